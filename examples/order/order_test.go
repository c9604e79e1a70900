package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/sagatest"
	"github.com/google/go-cmp/cmp"
)

// The saga alone, without Postgres and in no time.
func TestOrderWithoutMoneyIsCancelled(t *testing.T) {
	t.Parallel()
	shop := sagatest.New(t, orders(rules{payWithin: time.Hour}))
	deliver(t, shop.Deliver(OrderPlaced{Order: 7, Cents: 1999}))
	deliver(t, shop.Reply(ReserveStock{Order: 7}, StockReserved{Order: 7}))
	shop.Sent()
	deliver(t, shop.Advance(time.Hour))
	want := []any{ReleaseStock{Order: 7}, OrderClosed{Order: 7, Outcome: notPaid}}
	if diff := cmp.Diff(want, asAny(shop.Sent())); diff != "" {
		t.Errorf("an unpaid order sends other than wanted (-) this (+):\n%s", diff)
	}
	deliver(t, shop.Deliver(CardCharged{Order: 7}))
	if diff := cmp.Diff([]any{RefundCard{Order: 7}}, asAny(shop.Sent())); diff != "" {
		t.Errorf("a charge that comes too late sends other than wanted (-) this (+):\n%s", diff)
	}
}

func TestOrderShipsWhenPaidAndReserved(t *testing.T) {
	t.Parallel()
	shop := sagatest.New(t, orders(rules{payWithin: time.Hour}))
	deliver(t, shop.Deliver(OrderPlaced{Order: 7, Cents: 1999}))
	deliver(t, shop.Reply(ChargeCard{Order: 7, Cents: 1999}, CardCharged{Order: 7}))
	if len(shop.Pending("7")) != 0 {
		t.Error("a paid order still waits for its money")
	}
	shop.Sent()
	deliver(t, shop.Reply(ReserveStock{Order: 7}, StockReserved{Order: 7}))
	if diff := cmp.Diff([]any{ShipOrder{Order: 7}}, asAny(shop.Sent())); diff != "" {
		t.Errorf("an order with money and goods sends other than wanted (-) this (+):\n%s", diff)
	}
	deliver(t, shop.Reply(ShipOrder{Order: 7}, OrderShipped{Order: 7}))
	if shop.Live("7") {
		t.Error("a shipped order is still alive")
	}
}

// The whole program, shorter: 1,100 orders have each of the things that go wrong.
func TestProgram(t *testing.T) {
	t.Parallel()
	printed := runs(t)
	_, told, _ := strings.Cut(printed, "What happened to order 7:\n")
	for _, want := range []string{"began       order.placed", "→ card.charge, stock.reserve", "card.refused",
		"order.closed\n", "edda history show order 7\n"} {
		if !strings.Contains(told, want) {
			t.Errorf("the story of order 7 has no %q:\n%s", want, told)
		}
	}
}

// The pages of the shop are open while it runs and, with -stay, when all orders have ended.
func TestPagesStay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := open(ctx, settings{orders: 20, rate: 20, payWithin: time.Second, within: time.Minute,
			pages: "127.0.0.1:0", stay: true}, out)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	url, lines := "", bufio.NewScanner(printed)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "in a browser: "); ok {
			url = at
		}
		if strings.HasPrefix(lines.Text(), "The pages stay until Ctrl-C") {
			break
		}
	}
	if err := lines.Err(); err != nil || url == "" {
		t.Fatalf("no address was printed: %v", err)
	}
	response, err := http.Get(url + "sagas/order/7")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(string(page), "card.refused") {
		t.Errorf("the page of order 7: %s\n%s", response.Status, page)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The same endpoints, with the same outcome.
func TestProgramInMemory(t *testing.T) {
	t.Parallel()
	runs(t, "-memory")
}

// runs runs the program, and returns what it printed.
func runs(t *testing.T, flags ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	flags = append(flags, "-orders", "1100", "-rate", "1100", "-pay-within", "1s")
	if code := start(flags, &out, &complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	for _, want := range []string{"orders=1100 wrong=0", " shipped\n", cardRefused, notPaid,
		"the first dead letter: card.charge in payment"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program did not print %q:\n%s", want, out.String())
		}
	}
	return out.String()
}

// The check must see what it says it sees.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, own := t.Context(), pgdev.Schema(t)
	d, err := demo.Connect(ctx, pgdev.DSN(t), own, "test")
	if err != nil {
		t.Fatal(err)
	}
	pool := d.Pool
	defer pool.Close()
	if err := d.Create(ctx, tablesSQL); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Drop(ctx); err != nil {
			t.Error(err)
		}
	}()
	_, err = pool.Exec(ctx, `
		INSERT INTO placed VALUES (1, 5), (2, 5), (3, 5), (4, 5), (5, 5), (6, 5);
		INSERT INTO charge VALUES (1, 5), (2, 5), (2, 5), (3, 5), (5, 5);
		INSERT INTO refund VALUES (3);
		INSERT INTO reservation VALUES (1, 'hat'), (2, 'hat'), (3, 'hat'), (4, 'hat'), (5, 'hat');
		INSERT INTO release VALUES (3), (4), (5);
		INSERT INTO shipment VALUES (1), (2);
		INSERT INTO outcome VALUES (1, 'shipped'), (2, 'shipped'), (3, 'cancelled'), (4, 'cancelled'), (5,
		'cancelled'), (7, 'shipped')`)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := check(ctx, pool, 6, &out); err == nil {
		t.Error("the check found nothing wrong")
	}
	for _, want := range []string{"order 2 is shipped", "order 5 is cancelled", "order 6 is open", "order 7 is shipped",
		"orders=7 wrong=4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the check did not print %q:\n%s", want, out.String())
		}
	}
}

func TestLedgerSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := &ledger{orders: map[int]*effects{
		1: {1, 1, 0, 1, 0, 1, 1, shipped}, 2: {1, 2, 0, 1, 0, 1, 1, shipped}, 3: {1, 1, 1, 1, 1, 0, 1, notPaid},
		4: {1, 0, 0, 1, 1, 0, 1, notPaid}, 5: {1, 1, 0, 1, 1, 0, 1, notPaid}, 6: {placed: 1},
		7: {outcomes: 1, outcome: shipped},
	}}
	var out bytes.Buffer
	if err := judge(l.verdicts(), 6, &out); err == nil {
		t.Error("the check found nothing wrong")
	}
	for _, want := range []string{"order 2 is shipped", "order 5 is cancelled", "order 6 is open", "order 7 is shipped",
		"orders=7 wrong=4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the check did not print %q:\n%s", want, out.String())
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-orders", "0"}, {"-rate", "3"}, {"-pay-within", "1ms"}, {"now"}, {"-what"}} {
		var out, complaints bytes.Buffer
		if code := start(args, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), "-h for help") {
			t.Errorf("%v ended with %d and %q, want 2 and where help is", args, code, complaints.String())
		}
	}
	var out bytes.Buffer
	if code := start([]string{"-h"}, &out, &out); code != 0 || !strings.Contains(out.String(), "-pay-within") {
		t.Errorf("-h ended with %d and %q", code, out.String())
	}
}

func deliver(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func asAny[M any](messages []M) []any {
	all := make([]any, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return all
}
