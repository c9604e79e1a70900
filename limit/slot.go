package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	slots "github.com/edda-go/edda/internal/store/limit"
	"github.com/jackc/pgx/v5"
)

// ErrLost: a slot was not renewed in time, or a different caller has it.
var ErrLost = errors.New("the slot of the limit is lost")

// Slot is one of the n slots of a limit, held by one caller. Its methods are safe for concurrent use.
type Slot struct {
	of   *Limiter
	slot slots.Slot

	life  context.Context // ends when the slot is lost, or released
	end   context.CancelFunc
	alarm *time.Timer // ends life when the slot can be trusted no longer
	leave func()      // leaves the loop that renews

	once     sync.Once
	released error // the result of the release
}

// margin is how long before the end of the lease in the database the process considers a slot lost.
func (l *Limiter) margin() time.Duration { return min(l.options.Lease/10, time.Second) }

// hold keeps a slot that was requested at asked, by the clock of this process.
func (l *Limiter) hold(ctx context.Context, granted slots.Slot, asked time.Time) *Slot {
	s := &Slot{of: l, slot: granted}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	trusted := asked.Add(l.options.Lease - l.margin())
	l.mu.Lock() // the loop that renews finds the slot with its alarm, and the alarm finds the slot
	s.alarm = time.AfterFunc(time.Until(trusted), func() { l.lose(s, "it was not renewed in time") })
	l.held[s] = struct{}{}
	l.mu.Unlock()
	s.leave = l.keeping.Start(ctx)
	return s
}

// Epoch returns the number of this grant. It is larger than that of every earlier grant of the slot, and with a limit
// of 1 larger than that of every earlier grant of the limit: give it to a system outside of this database that refuses
// smaller numbers.
func (s *Slot) Epoch() int64 { return s.slot.Epoch }

// Lost returns a channel that is closed when the slot is lost or released. Unless this process was frozen, it is closed
// before the next caller can have the slot.
func (s *Slot) Lost() <-chan struct{} { return s.life.Done() }

// Guard binds tx to the slot: until tx ends, no other caller gets the slot. It returns ErrLost if the slot is lost, and
// then tx must not commit; otherwise nil or an error of the database. The slot is not renewed while tx is open: if that
// is longer than half a lease, the slot is lost when tx ends. Call Guard before tx locks rows that other transactions
// wait for. At REPEATABLE READ and SERIALIZABLE call it first, and run the transaction again after the error 40001,
// which means that a renewal has come in between.
func (s *Slot) Guard(ctx context.Context, tx pgx.Tx) error {
	held, err := s.of.store.Held(ctx, tx, []slots.Slot{s.slot})
	switch {
	case err != nil:
		return fmt.Errorf("guard by %s: %w", s.slot.Name, pgerr.Explain(err))
	case !held[0]:
		return fmt.Errorf("guard by %s, epoch %d: %w", s.slot.Name, s.slot.Epoch, ErrLost)
	}
	return nil
}

const (
	releaseTries   = 5
	releaseTimeout = 3 * time.Second
	releasePause   = 100 * time.Millisecond // after the first try, and twice as long after each of the next
)

// Release gives the slot back. It returns ErrLost if the slot had been lost, so that a different caller may have had it
// before Release was called, or an error of the database, after which the slot is free when its lease is over. It waits
// for a transaction with a Guard by the slot, and tries five times, for 3 s each. A later call returns the result of
// the first.
func (s *Slot) Release() error {
	s.once.Do(func() {
		s.alarm.Stop()
		lost := !s.of.drop(s)
		s.end()
		s.leave()
		s.released = s.release(context.WithoutCancel(s.life), lost)
	})
	return s.released
}

// release gives the slot back. lost reports that this process considers it lost.
func (s *Slot) release(ctx context.Context, lost bool) (err error) {
	for try := range releaseTries {
		var freed *slots.Released
		if freed, err = s.tryRelease(ctx); err != nil {
			_ = run.Sleep(ctx, run.Jitter(releasePause<<try)) // ctx does not end
			continue
		}
		s.of.queues.wake(s.slot.Name)
		s.of.call(ctx, freed.Waiting)
		if freed.Slots == 0 && (lost || try == 0) { // else a try whose answer was lost may have released it
			return fmt.Errorf("release %s, epoch %d: %w", s.slot.Name, s.slot.Epoch, ErrLost)
		}
		return nil
	}
	return fmt.Errorf("release %s, which is free in %v at the latest: %w", s.slot.Name, s.of.options.Lease,
		pgerr.Explain(err))
}

func (s *Slot) tryRelease(ctx context.Context) (*slots.Released, error) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	b := &pgx.Batch{}
	freed := s.of.store.QueueRelease(b, []slots.Slot{s.slot})
	return freed, s.of.pool.SendBatch(ctx, b).Close()
}

// call notifies the callers of other processes that wait.
func (l *Limiter) call(ctx context.Context, waiting []string) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := l.store.Call(ctx, l.pool, waiting...); err != nil {
		l.options.Logger.Debug("edda: notify failed", "error", err) // they request again without it
	}
}

// keep renews the slots that are held until ctx ends.
func (l *Limiter) keep(ctx context.Context) error {
	defer l.line.Close(context.WithoutCancel(ctx))
	pause := l.options.Lease / 4
	for run.Sleep(ctx, run.Jitter(pause)) == nil {
		pause = l.options.Lease / 4
		if err := l.renew(ctx); err != nil {
			pause = l.options.Lease / 20
			l.options.Logger.Debug("edda: slots were not renewed", "error", err, "again_in", pause)
		}
	}
	return nil
}

var errBusy = errors.New("a transaction has slots locked")

func (l *Limiter) renew(ctx context.Context) error {
	ours := map[slots.Slot]*Slot{}
	l.mu.Lock()
	for s := range l.held {
		ours[s.slot] = s
	}
	l.mu.Unlock()
	if len(ours) == 0 {
		return nil
	}
	all := make([]slots.Slot, 0, len(ours))
	for slot := range ours {
		all = append(all, slot)
	}
	began := time.Now()
	attempt, cancel := context.WithTimeout(ctx, l.options.Lease/4)
	defer cancel()
	var lost, busy []slots.Slot
	err := l.line.Do(attempt, func(conn pg.Conn) (err error) {
		lost, busy, err = l.store.Renew(attempt, conn, all, l.options.Lease)
		return err
	})
	if err != nil {
		return err
	}
	for _, slot := range lost {
		l.lose(ours[slot], "another process has it, or its lease has expired")
		delete(ours, slot)
	}
	for _, slot := range busy {
		delete(ours, slot)
	}
	for _, s := range ours {
		s.trust(began.Add(l.options.Lease - l.margin()))
	}
	if len(busy) > 0 {
		return errBusy
	}
	return nil
}

// lose ends the context of a slot, unless the slot was released in the meantime.
func (l *Limiter) lose(s *Slot, cause string) {
	if l.drop(s) {
		l.options.Logger.Warn("edda: the slot of a limit was lost", "limit", s.slot.Name, "holder", s.slot.Holder,
			"epoch", s.slot.Epoch, "cause", cause)
		s.end()
	}
}

// drop ends the renewals of a slot, and reports whether it was renewed until then.
func (l *Limiter) drop(s *Slot) (held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held = l.held[s]
	delete(l.held, s)
	return held
}

// trust postpones the alarm, unless it has gone off.
func (s *Slot) trust(until time.Time) {
	if s.alarm.Stop() {
		s.alarm.Reset(time.Until(until))
	}
}
