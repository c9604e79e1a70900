package lease

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// If the database's clock goes back, the terms of dead holders end in the far future. A bidder that has observed no
// renewal for the whole length of a term need not wait for that end; if it observes one it waits as usual. If the
// machine stalls for a term, the test tries a longer one.
func TestClockThatWentBackKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := New(schema)
	back := func() {
		pgtest.Exec(t, pool, schema.Render("UPDATE :schema.lease SET acquired = acquired + $1, renewed = renewed + "+
			"$1, expires = expires + $1"), time.Hour)
	}
	for ttl := 300 * time.Millisecond; !clockGoesBack(t, store, pool, ttl, back); ttl *= 2 {
		t.Logf("this machine stood still for a term of %v", ttl)
	}
}

// clockGoesBack runs the test with terms of ttl. back moves the times of all leases forward, as if the clock had gone
// back. It reports false if the machine stalled for the length of a term.
func clockGoesBack(t *testing.T, store *Store, pool *pgxpool.Pool, ttl time.Duration, back func()) bool {
	t.Helper()
	seen := sight{}
	name := "sweep/" + ttl.String()
	bid := func(holder string, seen *sight) (Term, bool) {
		t.Helper()
		term, ok, err := store.bid(t.Context(), pool, Bid{Name: name, Holder: holder, Lease: ttl}, seen)
		if err != nil {
			t.Fatal(err)
		}
		return term, ok
	}
	renewed := time.Now() // or earlier than the last renewal
	a, _ := bid("a", &sight{})
	for began := time.Now(); time.Since(began) < 3*ttl; {
		now := time.Now()
		answer, err := store.Renew(t.Context(), pool, a, ttl)
		switch {
		case err != nil:
			t.Fatal(err)
		case answer == Lost && time.Since(renewed) >= ttl:
			return false
		case answer != Renewed:
			t.Fatalf("renew: %v", answer)
		}
		renewed = now
		if found, ok := bid("b", &seen); (ok || found != a) && time.Since(renewed) >= ttl {
			return false
		} else if ok || found != a {
			t.Fatalf("the bid for a lease that is renewed: %+v, %t", found, ok)
		}
	}
	back()
	began := time.Now() // the bidder first reads the new version of the row at this time or later
	b, ok := bid("b", &seen)
	for !ok && time.Since(began) < 20*time.Second+20*ttl {
		b, ok = bid("b", &seen)
	}
	if took := time.Since(began); !ok || b.Epoch != a.Epoch+1 || took < ttl {
		t.Errorf("%+v, %t after %v, want the term after that of a, and not before %v", b, ok, took, ttl)
	}
	if answer, err := store.Renew(t.Context(), pool, a, ttl); err != nil || answer != Lost {
		t.Errorf("the old term's renewal: %v, %v", answer, err)
	}
	return true
}
