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
	"github.com/edda-go/edda/internal/engine/aftercommit"
	"github.com/edda-go/edda/internal/engine/delivery"
	"github.com/edda-go/edda/internal/engine/historian"
	"github.com/edda-go/edda/internal/engine/recall"
	"github.com/edda-go/edda/internal/engine/trouble"
)

// finisher ends messages whose handlers have ended.
type finisher struct {
	*Terms
	claims     *claims
	lanes      *lanes
	failing    *atomic.Bool    // of the claimer
	heartbeat  run.Nudge       // of the extender
	closed     <-chan struct{} // no handler runs any more, and none will
	history    *historian.Historian
	after      func(context.Context, *delivery.Effects) (failing bool)
	asideTried time.Time // when a message on which a finish had waited in vain was last tried
}

const (
	// giveUpAfter is how long the last finishes of a Run are tried. Other processes claim what is not finished then,
	// when its lease has ended.
	giveUpAfter = 10 * time.Second

	// asideEvery times patience passes before a message on which a finish waited in vain is tried again, while there
	// always are others to finish. Each try may take as long as patience.
	asideEvery = 3
)

// run finishes messages until no more can come. What ends while a transaction is on its way goes with the next.
func (f *finisher) run(ctx context.Context) error {
	retry := trouble.NewPatience()
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
		if errors.Is(err, delivery.ErrRehearsed) {
			continue
		}
		f.To.Calm.Warn("edda: a finish was rolled back", "endpoint", f.To.Name, "error", err)
		if pgerr.Incurable(err) || last && time.Now().After(deadline) {
			return fmt.Errorf("finish messages: %w", err)
		}
		if len(claims) == 1 && claims[0].trouble.success != nil {
			continue // at once: an outage that ends just now must not look like the message's doing
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

// blame puts the messages of a finish that failed back in front, and returns how many to try next: fewer, until a
// message that cannot be finished is alone.
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
	aside := class == pgerr.Busy || alone // it waits for a lock, or takes too long: the others go before it
	if f.claims.endAgain(claims, aside) && aside {
		f.asideTried = time.Now()
	}
	if class == pgerr.Busy || tookLong {
		f.heartbeat.Send() // their leases were not extended meanwhile
	}
	if trouble.Guilty(class, err) || trouble.Doubtful(class, err) {
		return max(1, len(claims)/2)
	}
	return len(claims)
}

// blame makes a failure of the success of a handler that cannot be written: at once if the server refuses what is in
// it, and after some times if that could also be a database in trouble. If the failure cannot be written either, it is
// the database, and the success is back. A lost connection says nothing about a message: its transaction runs no
// handler.
func (m *claimed) blame(class pgerr.Class, err error) {
	t := &m.trouble
	switch {
	case errors.Is(err, delivery.ErrRehearsed): // one more time, which decides
		m.msg, t.success = *t.success, nil
		t.count++
	case t.success != nil:
		m.msg, t.success, t.count = *t.success, nil, 0
	case trouble.Guilty(class, err):
		m.decoder.Fail(&m.msg, err)
	case m.msg.Fate == delivery.FateDone && trouble.Doubtful(class, err) && class != pgerr.Lost &&
		t.counts(errors.Is(err, context.DeadlineExceeded), time.Now()):
		if t.count++; t.count > recall.FreeTroubles {
			success := m.msg
			m.decoder.Fail(&m.msg, err)
			t.success = &success
		}
	}
}

// around is finish, with the hook of the user's around it.
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

// settled returns the fates of the messages of a finish, which is nil if it was rolled back.
func settled(done *finishing, claims []*claimed) []event.Settled {
	all := make([]event.Settled, len(claims))
	for n, m := range claims {
		all[n].Info = wire.ShownInfo(m.msg.Delivery.Info)
		switch {
		case done == nil:
		case m.release:
			all[n].Fate = event.FateLeft
		case !done.won[n] && !m.trouble.sent:
			all[n].Fate = event.FateLost
		default:
			all[n].Fate, all[n].Err = aftercommit.FateOf(&m.msg), m.msg.Err
		}
	}
	return all
}

// finish ends messages in one transaction with what follows from them. It deletes each message if our claim still
// stands, and writes nothing of those whose claims are lost. If nothing but the deletion is to be written, it goes with
// the COMMIT in one trip.
func (f *finisher) finish(ctx context.Context, claims []*claimed) (*finishing, error) {
	ctx, cancel := context.WithTimeout(ctx, trouble.CommitTimeout)
	defer cancel()
	done, err := f.commit(ctx, claims)
	if err != nil {
		return nil, err
	}
	done.callWaiting(ctx)
	f.failing.Store(f.after(ctx, done.effects))
	return done, nil
}

// commit is the part of finish that moves rows. What follows the commit calls functions of the user, and nothing waits
// for them.
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

// conclude lets go of what was finished, and gives up what was not ours. If an earlier finish of such a message had an
// unknown outcome, that finish has most likely committed.
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
