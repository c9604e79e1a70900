package migrations_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
)

func (s *site) begin(level pgx.TxIsoLevel) pgx.Tx {
	s.Helper()
	tx, err := s.pool.BeginTx(s.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		s.Fatal(err)
	}
	return tx
}

func (s *site) commit(tx pgx.Tx) {
	s.Helper()
	if err := tx.Commit(s.Context()); err != nil {
		s.Error(err)
	}
}

// waits returns when a second session waits for a lock that tx holds.
func (s *site) waits(tx pgx.Tx) {
	s.Helper()
	holder := tx.Conn().PgConn().PID()
	for range time.Tick(2 * time.Millisecond) {
		if one[bool](s, "SELECT EXISTS (SELECT FROM pg_stat_activity a WHERE $1::int = ANY (pg_blocking_pids(a.pid)))",
			int(holder)) {
			return
		}
	}
}

// If two transactions send under one id, the first decides, and the second waits until the first has ended.
func TestTwoSendsUnderOneID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*site, pgx.Tx)
		want sent
	}{
		"commit": {(*site).commit, sent{id: [16]byte{7}, duplicate: true}},
		"rollback": {func(s *site, tx pgx.Tx) {
			if err := tx.Rollback(s.Context()); err != nil {
				s.Error(err)
			}
		}, sent{id: [16]byte{7}, copies: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "")
			given := place().with(func(l *letter) { l.id = [16]byte{7} })
			first := s.begin(pgx.ReadCommitted)
			if _, err := s.sendOn(first, given); err != nil {
				t.Fatal(err)
			}
			var second sync.WaitGroup
			second.Go(func() {
				if got, err := s.send(given); err != nil || got != c.want {
					t.Errorf("after the %s of the first: %+v, %v, want %+v", name, got, err, c.want)
				}
			})
			s.waits(first)
			c.end(s, first)
			second.Wait()
			if n := s.count("orders"); n != 1 {
				t.Errorf("orders has %d messages, want 1", n)
			}
		})
	}
}

// subscribe adds a subscriber as an endpoint does: under the lock, and with a new generation.
func (s *site) subscribe(tx pgx.Tx, kind string) {
	s.Helper()
	for _, sql := range []string{
		"SELECT pg_advisory_xact_lock(1162101825, tableoid::int) FROM :schema.subscription_generation",
		"INSERT INTO :schema.subscription (kind, queue) SELECT '" + kind + "', id FROM :schema.queue WHERE " +
			"endpoint = 'orders'",
		"UPDATE :schema.subscription_generation SET generation = generation + 1",
	} {
		if _, err := tx.Exec(s.Context(), s.schema.Render(sql)); err != nil {
			s.Errorf("%s\n%v", sql, err)
		}
	}
}

// An event that is published while a subscriber is being added waits, and reaches the subscriber.
func TestPublishWaitsForANewSubscriber(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	adding := s.begin(pgx.ReadCommitted)
	s.subscribe(adding, "order.paid")
	var publisher sync.WaitGroup
	publisher.Go(func() {
		if got, err := s.send(letter{kind: "order.paid", body: []byte("{}"), publish: true}); err != nil ||
			got.copies != 3 {
			t.Errorf("published %+v, %v, want 3 copies", got, err)
		}
	})
	s.waits(adding)
	s.commit(adding)
	publisher.Wait()
}

// A subscriber is added after all transactions that have published without it have committed.
func TestANewSubscriberWaitsForPublishers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	publishing := s.begin(pgx.ReadCommitted)
	if got, err := s.sendOn(publishing, letter{kind: "order.paid", body: []byte("{}"), publish: true}); err != nil ||
		got.copies != 2 {
		t.Fatalf("published %+v, %v, want 2 copies", got, err)
	}
	var subscriber sync.WaitGroup
	subscriber.Go(func() {
		adding := s.begin(pgx.ReadCommitted)
		s.subscribe(adding, "order.paid")
		s.commit(adding)
	})
	s.waits(publishing)
	s.commit(publishing)
	subscriber.Wait()
}

// A transaction whose snapshot is older than the subscriber cannot see it. Postgres fails the transaction with an
// error that asks for a retry, so it cannot publish past the subscriber.
func TestPublishFromAnOldSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		s := newSite(t, "")
		old := s.begin(level)
		if _, err := old.Exec(t.Context(), "SELECT txid_current_snapshot()"); err != nil {
			t.Fatal(err)
		}
		adding := s.begin(pgx.ReadCommitted)
		s.subscribe(adding, "order.paid")
		s.commit(adding)
		got, err := s.sendOn(old, letter{kind: "order.paid", body: []byte("{}"), publish: true})
		if pgerr.ClassOf(err) != pgerr.Race {
			t.Errorf("%s: published %+v, %v, want a serialization failure", level, got, err)
		}
		if err := old.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := s.begin(level)
		if got, err := s.sendOn(fresh, letter{kind: "order.paid", body: []byte("{}"), publish: true}); err != nil ||
			got.copies != 3 {
			t.Errorf("%s: run again: %+v, %v, want 3 copies", level, got, err)
		}
		s.commit(fresh)
	}
}

// Endpoints of many processes start at the same moment after a deploy.
func TestCreateQueueAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, `weird"x y`)
	numbers := make([]int, 8)
	var together sync.WaitGroup
	for i := range numbers {
		together.Go(func() {
			err := pg.Committed(s.pool).Row(t.Context(),
				s.schema.Render("SELECT :schema.create_queue('new.one')")).Scan(&numbers[i])
			if err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	for _, n := range numbers {
		if n != numbers[0] || n == 0 {
			t.Fatalf("numbers of one queue: %v", numbers)
		}
	}
	if n := s.count("new.one"); n != 0 {
		t.Errorf("a new queue has %d messages", n)
	}
}

func TestCreateQueueRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, name := range []any{nil, "", "Orders", "1st", "a\n", "ä", `x"; DROP TABLE queue; --`,
		string(make([]byte, 1))} {
		_, err := s.pool.Exec(t.Context(), s.schema.Render("SELECT :schema.create_queue($1)"), name)
		if code := pgerr.Code(err); code != "23514" && code != "23502" && code != "22021" {
			t.Errorf("create_queue(%q): %v", name, err)
		}
	}
}

// Every take reads the due of a row: an infinite one would stop the queue.
func TestQueueRefusesInfiniteDue(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, due := range []string{"infinity", "-infinity"} {
		_, err := s.pool.Exec(t.Context(), "INSERT INTO "+s.table("orders")+
			" (due, id, kind, header, body) VALUES ($1::text::timestamptz, gen_random_uuid(), 'k', '', '')", due)
		if !strings.HasSuffix(pgerr.Constraint(err), "_due_finite") {
			t.Errorf("due %s: %v", due, err)
		}
	}
}
