package leased

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
)

// finisher finishes messages whose handlers have ended.
type finisher struct {
	*Terms
	claims     *claims
	lanes      *lanes
	failing    *atomic.Bool    // of the claimer
	heartbeat  run.Nudge       // of the extender
	closed     <-chan struct{} // closed when no handler runs any more or can start
	history    *outcome.Historian
	after      func(context.Context, *outcome.Effects) (failing bool)
	asideTried time.Time // when a message whose finish had waited in vain was last tried
}

const (
	// giveUpAfter is how long a Run tries its last finishes. After that, other processes claim the messages when
	// their leases have ended.
	giveUpAfter = 10 * time.Second

	// asideEvery: while other messages wait to be finished, asideEvery times patience passes before a message whose
	// finish waited in vain is tried again. Each try may take as long as patience.
	asideEvery = 3
)

// run finishes messages until no more can come. Messages that end while a transaction is in flight go with the next.
func (f *finisher) run(ctx context.Context) error {
	retry := contention.NewPatience()
	most := f.Options.BatchMax
	var deadline time.Time
	for {
		claims, last := f.takeEnded(most)
		if len(claims) == 0 && last {
			return nil
		}
		if len(claims) == 0 {
			f.awaitEnded()
			continue
		}
		if last && deadline.IsZero() {
			deadline = time.Now().Add(giveUpAfter)
		}
		err := f.around(ctx, claims)
		pause := retry.After(err)
		if err == nil {
			most = min(2*most, f.Options.BatchMax)
			continue
		}
		most = f.blame(claims, err)
		if errors.Is(err, outcome.ErrRehearsed) {
			continue
		}
		f.To.Calm.Warn("edda: a finish was rolled back", "endpoint", f.To.Name, "error", err)
		if pgerr.Incurable(err) || last && time.Now().After(deadline) {
			return fmt.Errorf("finish messages: %w", err)
		}
		if len(claims) == 1 && claims[0].trouble.success != nil {
			continue // at once: an outage that ends just now must not look like the message's fault
		}
		_ = run.Sleep(ctx, pause) // this context never ends
	}
}

func (f *finisher) awaitEnded() {
	select {
	case <-f.claims.over:
	case <-f.closed:
	}
}

// takeEnded returns up to most messages that are to be finished, and whether no more can come.
func (f *finisher) takeEnded(most int) (claims []*claimed, last bool) {
	select {
	case <-f.closed:
		last = true
	default:
	}
	claims = f.claims.takeEnded(most, time.Since(f.asideTried) >= asideEvery*f.patience())
	if len(claims) == 1 && claims[0].trouble.aside {
		f.asideTried = time.Now()
	}
	return claims, last
}

// blame puts the messages of a failed finish back in front, and returns how many to try next: fewer, until a message
// that cannot be finished is alone.
func (f *finisher) blame(claims []*claimed, err error) (most int) {
	class := pgerr.ClassOf(err)
	if class == pgerr.GuardFailed || class == pgerr.Unprepared {
		f.To.Routes.Forget()
	}
	if len(claims) == 1 {
		claims[0].blame(class, err)
	}
	tookLong := errors.Is(err, context.DeadlineExceeded)
	alone := len(claims) == 1 && tookLong && claims[0].trouble.success == nil
	aside := class == pgerr.Busy || alone // it waits for a lock, or takes too long: the others come first
	if f.claims.endAgain(claims, aside) && aside {
		f.asideTried = time.Now()
	}
	if class == pgerr.Busy || tookLong {
		f.heartbeat.Send() // their leases were not extended during the finish
	}
	if contention.Guilty(class, err) || contention.Doubtful(class, err) {
		return max(1, len(claims)/2)
	}
	return len(claims)
}

// blame turns a success that cannot be written into a failure: at once if the server refuses its contents, and after
// several tries if a database in trouble could also be the cause. If the failure cannot be written either, the
// database is the cause, and m is a success again. A lost connection does not count against a message, because the
// transaction runs no handler.
func (m *claimed) blame(class pgerr.Class, err error) {
	t := &m.trouble
	switch {
	case errors.Is(err, outcome.ErrRehearsed): // one more try, which decides
		m.msg, t.success = *t.success, nil
		t.count++
	case t.success != nil:
		m.msg, t.success, t.count = *t.success, nil, 0
	case contention.Guilty(class, err):
		m.decoder.Fail(&m.msg, err)
	case m.msg.Fate == message.FateDone && contention.Doubtful(class, err) && class != pgerr.Lost &&
		t.counts(errors.Is(err, context.DeadlineExceeded), time.Now()):
		if t.count++; t.count > contention.FreeTroubles {
			success := m.msg
			m.decoder.Fail(&m.msg, err)
			t.success = &success
		}
	}
}

// around calls finish inside the user's hook.
func (f *finisher) around(ctx context.Context, claims []*claimed) (err error) {
	hook := f.To.Hooks.Around
	if hook == nil {
		_, err = f.finish(ctx, claims)
		return err
	}
	t := &event.Transaction{Endpoint: f.To.Name, Work: event.Finish}
	hook.Do(ctx, t, func(ctx context.Context) {
		var done *finishing
		done, err = f.finish(ctx, claims)
		t.Taken, t.Err = len(claims), err
		t.Messages = func() []event.Settled { return settled(done, claims) }
	})
	return err
}

// settled returns the fates of the messages of a finish. done is nil if it was rolled back.
func settled(done *finishing, claims []*claimed) []event.Settled {
	all := make([]event.Settled, len(claims))
	for n, m := range claims {
		var fate event.Fate
		var err error
		switch {
		case done == nil:
		case m.release:
			fate = event.FateLeft
		case !done.won[n] && !m.trouble.sent:
			fate = event.FateLost
		default:
			fate, err = outcome.FateOf(&m.msg), m.msg.Err
		}
		all[n] = event.Settled{Info: wire.ShownInfo(m.msg.Delivery.Info), Fate: fate, Err: err}
	}
	return all
}

// finish ends messages in one transaction, with their effects. It deletes each message if our claim is still in
// force, and writes nothing of messages whose claims are lost. If the deletion is all there is to write, it goes with
// the COMMIT in one trip.
func (f *finisher) finish(ctx context.Context, claims []*claimed) (*finishing, error) {
	ctx, cancel := context.WithTimeout(ctx, contention.CommitTimeout)
	defer cancel()
	done, err := f.commit(ctx, claims)
	if err != nil {
		return nil, err
	}
	done.callWaiting(ctx)
	f.failing.Store(f.after(ctx, done.effects))
	return done, nil
}

// commit is the part of finish that moves rows. The work after the commit calls functions of the user, and no
// statement waits for them.
func (f *finisher) commit(ctx context.Context, claims []*claimed) (*finishing, error) {
	f.lanes.deciding.Lock()
	defer f.lanes.deciding.Unlock()
	ctx, cancel := context.WithTimeout(ctx, f.patience())
	defer cancel()
	defer f.claims.keepStill(claims)()
	conn, err := f.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	t := newFinishing(f, conn.Conn(), claims)
	if err := t.commit(ctx); err != nil {
		t.rollback(ctx, t.effects.In.Conn)
		for _, m := range claims {
			m.trouble.sent = m.trouble.sent || t.sent
		}
		return nil, err
	}
	f.conclude(t)
	return t, nil
}

// conclude removes the finished messages, and gives up messages that were not ours. If an earlier finish of such a
// message had an unknown outcome, that finish has most likely committed.
func (f *finisher) conclude(t *finishing) {
	for n, m := range t.claims {
		if t.won[n] || m.trouble.sent {
			f.claims.letGo(m)
			continue
		}
		f.claims.lose(m)
	}
	t.concludeLanes()
	if !t.effects.In.Now.IsZero() {
		f.claims.clock.note(t.effects.In.Now, t.effects.In.Begun)
	}
	t.wakeReleased()
}
