package persistence_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// crowdCases run many concurrent transactions.
var crowdCases = []conformCase{
	{"StartRaceHasOneWinner", startRaceHasOneWinner},
	{"OverlappingBatchesDoNotDeadlock", overlappingBatchesDoNotDeadlock},
}

func startRaceHasOneWinner(s scene) {
	for round, racers := range []int{2, 50} {
		k := fmt.Sprint(racers)
		wins := make(chan bool, racers)
		for n := range racers {
			go func() {
				won, err := race(s.Context(), s.store, start(order(k, round*100+n+1)))
				if err != nil {
					s.Errorf("racer %d: %v", n, err)
				}
				wins <- won
			}()
		}
		winners := 0
		for range racers {
			if <-wins {
				winners++
			}
		}
		if winners != 1 {
			s.Errorf("%d of %d starts won, want 1", winners, racers)
		}
		s.want(k, 1)
	}
}

func race(ctx context.Context, store fixture, w persistence.Write) (bool, error) {
	tx, err := store.begin(ctx)
	if err != nil {
		return false, err
	}
	won, err := tx.Save(ctx, []persistence.Write{w})
	if err != nil {
		return false, cmp.Or(err, tx.Rollback(ctx))
	}
	return won[0], tx.Commit(ctx)
}

// crowd is a group of workers with overlapping batches of starts, updates, checks and completes.
type crowd struct {
	scene
	ids             atomic.Uint64
	batches, losses atomic.Int64
	won             [5]atomic.Int64
}

const crowdKeys = 12

func overlappingBatchesDoNotDeadlock(s scene) {
	const workers = 8
	c := &crowd{scene: s}
	began := time.Now()
	enough := func() bool {
		took := time.Since(began)
		return took > 2*time.Second && c.batches.Load() >= workers && c.losses.Load() > 0 ||
			took > pgdev.Patience(20*time.Second)
	}
	done := make(chan error, workers)
	for w := range workers {
		go func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			var err error
			for err == nil && !enough() {
				err = c.batch(r)
			}
			done <- err
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			s.Errorf("a worker ended: %v (class %v)", err, pgerr.ClassOf(err))
		}
	}
	if c.batches.Load() < workers || c.losses.Load() == 0 {
		s.Errorf("%d batches, %d lost saves: this was no crowd", c.batches.Load(), c.losses.Load())
	}
	living := c.won[persistence.Start].Load() - c.won[persistence.Complete].Load()
	for k := range crowdKeys {
		_, ok, err := s.store.read(s.Context(), "order", fmt.Sprint(k))
		if err != nil {
			s.Fatal(err)
		}
		if ok {
			living--
		}
	}
	if living != 0 {
		s.Errorf("starts less completes differ by %d from the instances alive", living)
	}
	s.Logf("%d batches, %d saves lost", c.batches.Load(), c.losses.Load())
}

// batch loads a few keys in a random order, decides, saves, and commits or rolls back.
func (c *crowd) batch(r *rand.Rand) error {
	ctx := c.Context()
	tx, err := c.store.begin(ctx)
	if err != nil {
		return err
	}
	var refs []persistence.Ref
	for _, k := range r.Perm(crowdKeys)[:1+r.IntN(crowdKeys)] {
		refs = append(refs, persistence.Ref{Saga: "order", Key: fmt.Sprint(k), Lock: c.store.lock})
	}
	found, err := tx.Load(ctx, refs)
	if err != nil {
		return cmp.Or(err, tx.Rollback(ctx))
	}
	writes, err := c.decide(r, refs, found)
	if err != nil {
		return cmp.Or(err, tx.Rollback(ctx))
	}
	won, err := tx.Save(ctx, writes)
	if err != nil || r.IntN(5) == 0 {
		return cmp.Or(err, tx.Rollback(ctx))
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	c.count(writes, won)
	return nil
}

// decide counts the versions of every instance in its state, so that a lost update is detected.
func (c *crowd) decide(r *rand.Rand, refs []persistence.Ref, found []persistence.Found) (writes []persistence.Write,
	err error) {
	for n, f := range found {
		switch {
		case f.Status == persistence.Absent:
			i := order(refs[n].Key, 1)
			i.ID = saga.ID(slices.Concat(fmt.Appendf(nil, "%016x", c.ids.Add(1))))
			i.State = []byte("1")
			writes = append(writes, persistence.Write{Op: []persistence.Op{persistence.Start,
				persistence.StartAndComplete}[r.IntN(4)/3], Instance: i})
		case f.Status == persistence.Loaded:
			var count int64
			if err := json.Unmarshal(f.Instance.State, &count); err != nil || count != f.Instance.Version {
				return nil, fmt.Errorf("order/%s has version %d and counted %s: %v", f.Instance.Key, f.Instance.Version,
					f.Instance.State, err)
			}
			op := []persistence.Op{persistence.Check, persistence.Update, persistence.Update,
				persistence.Complete}[r.IntN(4)]
			f.Instance.State = fmt.Append(nil, count+1)
			writes = append(writes, write(op, f))
		}
	}
	return writes, nil
}

func (c *crowd) count(writes []persistence.Write, won []bool) {
	c.batches.Add(1)
	for n, w := range writes {
		if won[n] {
			c.won[w.Op].Add(1)
		} else {
			c.losses.Add(1)
		}
	}
}
