package outbox_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func keep(t *testing.T, pool *pgxpool.Pool, store *outbox.Store, rows ...outbox.Kept) {
	t.Helper()
	b := &pgx.Batch{}
	store.QueueKeep(b, rows)
	if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCopiesAreListedInTheirOrder(t *testing.T) {
	b := openBorder(t)
	pool, store := b.pool, b.store
	var rows []outbox.Kept
	for n := range 10 {
		kind := "order.paid"
		if n%2 == 1 {
			kind = "order.lost"
		}
		rows = append(rows, outbox.Kept{Endpoint: "shop", ID: saga.ID{byte(200 - n)}, Kind: kind, Header: []byte("{}"),
			Body: fmt.Appendf(nil, "\x00%d", n), Sent: time.Unix(int64(n+1), 0).UTC()})
	}
	keep(t, pool, store, rows[:5]...)
	if turned, err := ring.New(b.schema).Rotate(t.Context(), pool, ring.Outbox); err != nil || turned {
		t.Errorf("it turned %v before it was due: %v", turned, err)
	}
	b.turn(ring.Outbox)
	keep(t, pool, store, rows[5:]...)
	keep(t, pool, store, outbox.Kept{Endpoint: "other", ID: saga.ID{1}, Kind: "k", Header: []byte("{}"),
		Body: []byte("x")})
	var got []outbox.Kept
	for place, more := (outbox.KeptPlace{}), true; more; {
		page, err := store.ListKept(t.Context(), pool, outbox.KeptFilter{Endpoint: "shop"}, place, 3)
		if err != nil {
			t.Fatal(err)
		}
		got, place, more = append(got, page.Found...), page.Next, page.More
	}
	if err := store.ReadBodies(t.Context(), pool, got); err != nil || len(got) != 10 {
		t.Fatalf("%d copies, %v", len(got), err)
	}
	for n, k := range got {
		if k.ID != rows[n].ID || !bytes.Equal(k.Body, rows[n].Body) || !k.Sent.Equal(rows[n].Sent) || k.Size != 2 {
			t.Errorf("copy %d is %+v", n, k)
		}
	}
	some, err := store.ListKept(t.Context(), pool,
		outbox.KeptFilter{Endpoint: "shop", Kind: "order.paid", Since: got[2].Relayed, Until: got[8].Relayed},
		outbox.KeptPlace{}, 100)
	if err != nil || len(some.Found) != 3 || some.More || some.Found[0].ID != got[2].ID {
		t.Errorf("of a time and a kind: %v, %v", some, err)
	}
	shown, err := store.ShowKept(t.Context(), pool, saga.ID{1})
	if err != nil || len(shown) != 1 || string(shown[0].Body) != "x" || shown[0].Endpoint != "other" ||
		!shown[0].Sent.IsZero() {
		t.Errorf("%+v, %v", shown, err)
	}
	for range 4 {
		b.turn(ring.Outbox)
	}
	if left, err := store.ListKept(t.Context(), pool, outbox.KeptFilter{Endpoint: "shop"}, outbox.KeptPlace{},
		100); err != nil || len(left.Found) != 0 {
		t.Errorf("after a round of the ring %d are left, %v", len(left.Found), err)
	}
}

// Without the limit, all headers of a page would be in memory at once: a gigabyte, if a sender wanted that.
func TestPageOfCopiesEndsWhereItsHeadersAreLarge(t *testing.T) {
	b := openBorder(t)
	const copies, heavy = 12, 2 << 20
	for n := range copies {
		keep(t, b.pool, b.store, outbox.Kept{Endpoint: "shop", ID: saga.ID{byte(n + 1)}, Kind: "k",
			Header: bytes.Repeat([]byte("x"), heavy-1), Body: []byte("{}")})
	}
	var got []outbox.Kept
	for place, more := (outbox.KeptPlace{}), true; more; {
		page, err := b.store.ListKept(t.Context(), b.pool, outbox.KeptFilter{Endpoint: "shop"}, place, copies)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Found) > 4 {
			t.Errorf("%d headers of 2 MiB in one page", len(page.Found))
		}
		got, place, more = append(got, page.Found...), page.Next, page.More
	}
	for n, k := range got {
		if k.ID != (saga.ID{byte(n + 1)}) {
			t.Errorf("copy %d is %v", n, k.ID)
		}
	}
	if len(got) != copies {
		t.Errorf("%d copies", len(got))
	}
}
