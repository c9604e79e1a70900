package lease

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/pg/pgtest"
)

// A clock that goes back leaves the terms of the dead with an end that is far away. Who has seen no renewal for the whole time of
// a term need not wait for it, and who sees one waits as ever.
func TestClockThatWentBackKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store, err := New(schema)
	if err != nil {
		t.Fatal(err)
	}
	const ttl = 300 * time.Millisecond
	seen := sight{}
	bid := func(holder string, seen *sight) (Term, bool) {
		t.Helper()
		term, ok, err := store.bid(t.Context(), pool, Bid{Name: "sweep", Holder: holder, TTL: ttl}, seen)
		if err != nil {
			t.Fatal(err)
		}
		return term, ok
	}
	a, _ := bid("a", &sight{})
	for began := time.Now(); time.Since(began) < 3*ttl; {
		if answer, err := store.Renew(t.Context(), pool, a, ttl); err != nil || answer != Renewed {
			t.Fatalf("renew: %v, %v", answer, err)
		}
		if found, ok := bid("b", &seen); ok || found != a {
			t.Fatalf("the bid for a lease that is renewed: %+v, %t", found, ok)
		}
	}
	back := schema.Render("UPDATE :schema.lease SET acquired = acquired + $1, renewed = renewed + $1, expires = expires + $1")
	if _, err := pool.Exec(t.Context(), back, time.Hour); err != nil {
		t.Fatal(err)
	}
	began := time.Now() // of the sight at the latest: the row is another version now
	for {
		b, ok := bid("b", &seen)
		took := time.Since(began)
		if !ok && took < 20*ttl {
			continue
		}
		if !ok || b.Epoch != a.Epoch+1 || took < ttl {
			t.Errorf("%+v, %t after %v, want the term after that of a, and not before %v", b, ok, took, ttl)
		}
		break
	}
	if answer, err := store.Renew(t.Context(), pool, a, ttl); err != nil || answer != Lost {
		t.Errorf("the old term's renewal: %v, %v", answer, err)
	}
}
