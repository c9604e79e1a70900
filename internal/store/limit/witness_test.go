package limit_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// The witness records the actions of holders and setters in their own transactions, by the database's clock.
// Afterwards the test judges only the recorded intervals.
const witnessTables = `
	CREATE TABLE :schema.witness (name text, no int, epoch bigint, holder text, asked timestamptz, sent timestamptz,
	begun timestamptz, until timestamptz, ended timestamptz, PRIMARY KEY (name, no, epoch));
	CREATE TABLE :schema.witness_limit (n int, at timestamptz, over timestamptz);
	GRANT ALL ON :schema.witness, :schema.witness_limit TO PUBLIC`

const witnessLease = 400 * time.Millisecond

// server is a process that works under the limit, dies at times and comes back with a new name.
type server struct {
	*world
	number, life int
	asked        time.Time // by the database's clock
}

func (s *server) holder() string { return fmt.Sprintf("server-%d/%d", s.number, s.life) }

// work requests slots, works and finishes until ctx ends.
func (s *server) work(ctx context.Context) error {
	for ctx.Err() == nil {
		slots, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if len(slots) == 0 {
			_ = run.Sleep(ctx, run.Jitter(5*time.Millisecond))
			continue
		}
		if err := s.hold(ctx, slots); err != nil {
			return err
		}
	}
	return nil
}

// begin requests slots, and records the granted ones in the same transaction.
func (s *server) begin(ctx context.Context) (slots []limit.Slot, err error) {
	err = pgx.BeginFunc(context.WithoutCancel(ctx), s.pool, func(tx pgx.Tx) error {
		if s.asked.IsZero() {
			if err := tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&s.asked); err != nil {
				return err
			}
		}
		g, err := s.store.Grant(context.WithoutCancel(ctx), tx,
			limit.Request{Name: "billing", Holder: s.holder(), Want: 1 + rand.IntN(2), Lease: witnessLease})
		if err != nil {
			return err
		}
		slots = g.Slots
		for _, slot := range slots {
			_, err := tx.Exec(context.WithoutCancel(ctx),
				s.schema.Render(`INSERT INTO :schema.witness SELECT $1, $2, $3, $4, $5, now(), granted, expires
				FROM :schema.slot WHERE name = $1 AND no = $2`), slot.Name, slot.No, slot.Epoch, slot.Holder, s.asked)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if len(slots) > 0 {
		s.asked = time.Time{}
	}
	return slots, err
}

// hold is the work: it succeeds, or its process dies, or it sleeps past the end of its lease and then continues.
func (s *server) hold(ctx context.Context, slots []limit.Slot) error {
	switch fate := rand.IntN(20); {
	case fate < 2:
		s.life++
		s.asked = time.Time{}
		return nil
	case fate < 5:
		_ = run.Sleep(ctx, witnessLease+time.Duration(rand.IntN(200))*time.Millisecond)
		return s.finish(ctx, slots)
	}
	for range rand.IntN(4) {
		_ = run.Sleep(ctx, time.Duration(rand.IntN(30))*time.Millisecond)
		if err := s.beat(ctx, slots); err != nil {
			return err
		}
	}
	return s.finish(ctx, slots)
}

func (s *server) beat(ctx context.Context, slots []limit.Slot) error {
	ctx = context.WithoutCancel(ctx)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, _, err := s.store.Renew(ctx, tx, slots, witnessLease); err != nil {
			return err
		}
		for _, slot := range slots {
			_, err := tx.Exec(ctx, s.schema.Render(`UPDATE :schema.witness w SET until = s.expires FROM :schema.slot s
				WHERE (w.name, w.no, w.epoch) = ($1, $2, $3) AND (s.name, s.no, s.epoch, s.holder) = ($1, $2, $3, $4)`),
				slot.Name, slot.No, slot.Epoch, slot.Holder)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// finish records the end of the slots that are still held, and frees them.
func (s *server) finish(ctx context.Context, slots []limit.Slot) error {
	ctx = context.WithoutCancel(ctx)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		held, err := s.store.Held(ctx, tx, slots)
		if err != nil {
			return err
		}
		for n, slot := range slots {
			if !held[n] {
				continue
			}
			_, err := tx.Exec(ctx, s.schema.Render("UPDATE :schema.witness SET ended = clock_timestamp() WHERE "+
				"(name, no, epoch) = ($1, $2, $3)"), slot.Name, slot.No, slot.Epoch)
			if err != nil {
				return err
			}
		}
		b := &pgx.Batch{}
		s.store.QueueRelease(b, slots)
		return tx.SendBatch(ctx, b).Close()
	})
}

// change sets the limit, and records that.
func (w *world) change(ctx context.Context, n int) error {
	ctx = context.WithoutCancel(ctx)
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := w.store.Set(ctx, tx, "billing", n); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, w.schema.Render("INSERT INTO :schema.witness_limit VALUES ($1, clock_timestamp())"), n)
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.pool.Exec(ctx, w.schema.Render("UPDATE :schema.witness_limit SET over = clock_timestamp() WHERE "+
		"over IS NULL"))
	return err
}

// term is the time of one holder with a slot, in the witness's record.
type term struct {
	No          int
	Epoch       int64
	Holder      string
	Asked       time.Time
	Sent, Begun time.Time // the grant took effect between the two: its begin, and the time in its row
	End         time.Time // when it was finished, or its lease was over
	Finished    bool
}

func (w *world) terms() []term {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), w.schema.Render(
		`SELECT no, epoch, holder, asked, sent, begun, coalesce(ended, until), ended IS NOT NULL FROM :schema.witness
			ORDER BY begun`))
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[term])
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

type era struct {
	N        int
	At, Over time.Time // the change took effect between the two: it was recorded, and its commit was known
}

func (w *world) eras() []era {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), w.schema.Render(
		`SELECT n, at, over FROM :schema.witness_limit ORDER BY at`))
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[era])
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// active returns the terms under way at a moment.
func active(all []term, at time.Time) (active []term) {
	for _, one := range all {
		if one.End.After(at) && !one.Begun.After(at) {
			active = append(active, one)
		}
	}
	return active
}

// before returns the terms that were, or may have been, under way when the limit changed.
func (e era) before(all []term) (before []term) {
	for _, one := range all {
		if one.End.After(e.At) && !one.Sent.After(e.Over) {
			before = append(before, one)
		}
	}
	return before
}

// judge checks every moment at which a term began. The number of terms under way must be at most the limit, plus,
// until they have ended, the terms that were too many when it was lowered.
func judge(t *testing.T, all []term, eras []era) (most int) {
	t.Helper()
	for _, one := range all {
		k, _ := slices.BinarySearchFunc(eras, one.Begun,
			func(e era, at time.Time) int { return cmp.Or(e.At.Compare(at), -1) })
		if k == 0 {
			t.Fatalf("a slot was granted before there was a limit: %+v", one)
		}
		now, before := active(all, one.Begun), eras[k-1].before(all)
		old := 0
		for _, other := range now {
			if slices.Contains(before, other) {
				old++
			}
		}
		bound := eras[k-1].N + min(old, max(0, len(before)-eras[k-1].N))
		if len(now) > bound {
			t.Errorf("%d holders, and the limit is %d since %v with %d then: %+v", len(now), eras[k-1].N, eras[k-1].At,
				len(before), now)
		}
		most = max(most, len(now))
	}
	return most
}

// Servers that die and sleep, and a limit that changes all the time.
func TestWitnessSeesNoMomentAboveTheLimit(t *testing.T) {
	w := open(t)
	if _, err := pgtest.Pool(t).Exec(t.Context(), w.schema.Render(witnessTables)); err != nil {
		t.Fatal(err)
	}
	const servers, lasts = 5, 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), lasts)
	defer cancel()
	group := run.NewGroup(ctx)
	if err := w.change(ctx, 3); err != nil {
		t.Fatal(err)
	}
	group.Go(func(ctx context.Context) (err error) {
		for err == nil && run.Sleep(ctx, time.Duration(20+rand.IntN(150))*time.Millisecond) == nil {
			err = w.change(ctx, 1+rand.IntN(5))
		}
		return err
	})
	for number := range servers {
		group.Go((&server{world: w, number: number}).work)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	terms, eras := w.terms(), w.eras()
	most := judge(t, terms, eras)
	served, finished, waited := map[byte]int{}, 0, time.Duration(0)
	for n, one := range terms {
		served[one.Holder[len("server-")]]++
		waited = max(waited, one.Begun.Sub(one.Asked))
		if one.Finished {
			finished++
		}
		for _, later := range terms[n+1:] {
			if later.No == one.No && later.Begun.Before(one.End) && later.Epoch > one.Epoch {
				t.Errorf("two at once in slot %d: %+v and %+v", one.No, one, later)
			}
		}
	}
	t.Logf("%d terms, %d of them finished, under %d limits; at most %d at once; served %v, the longest wait %v",
		len(terms), finished, len(eras), most, served, waited)
	if len(served) != servers || waited > lasts/2 {
		t.Errorf("a server was starved: served %v, the longest wait %v", served, waited)
	}
	if finished < len(terms)/2 || finished == len(terms) || most < 4 {
		t.Error("the witness saw too little")
	}
}
