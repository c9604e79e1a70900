package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/store/settings"
)

// work is one term of this process. life ends when Run is over, when the holder is asked to resign, and when the
// lease is lost or in doubt. Only a lost lease cancels forward at once, because another process may be relaying then.
func (r *Relay) work(life context.Context, t lease.Term) error {
	working, cancel := context.WithCancelCause(context.WithoutCancel(life))
	defer cancel(nil)
	side := run.NewGroup(working)
	side.Go(func(working context.Context) error { r.drain(life, working, cancel); return nil })
	r.border.Events(event.RelayHeld{Endpoint: r.name, Holding: true})
	err := r.serve(life, working, t)
	r.border.Events(event.RelayHeld{Endpoint: r.name})
	if errors.Is(context.Cause(working), run.ErrDrain) {
		r.ending.Drained()
	}
	cancel(nil)
	_ = side.Wait() // drain returns no error
	if err != nil && life.Err() == nil && cannotGoOn(err) {
		r.ending.GiveUp(err)
	}
	return err
}

// drain ends the work of a term that is over: at once if the lease is lost, else after Drain. The lease is renewed
// until then.
func (r *Relay) drain(life, working context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-working.Done():
		return
	case <-life.Done():
	}
	if cause := context.Cause(life); errors.Is(cause, lease.ErrLost) {
		cancel(cause)
		return
	}
	for last := time.Now().Add(r.options.Drain); ; {
		trusted := r.keeper.Health().Trusted // by the renewals so far
		if run.Sleep(working, min(time.Until(last), time.Until(trusted))) != nil {
			return
		}
		switch now := time.Now(); {
		case !now.Before(last):
			cancel(run.ErrDrain)
			return
		case !now.Before(r.keeper.Health().Trusted):
			cancel(lease.ErrLost)
			return
		}
	}
}

// serve runs the loop of one term, and the goroutines that wake it and follow its settings.
func (r *Relay) serve(life, working context.Context, t lease.Term) error {
	b := r.border
	pool, err := b.Process.OpenPool(working, relayIdle)
	if err != nil {
		return err
	}
	defer pool.Close()
	loop := newRelayTerm(r, t, pool)
	if err := loop.settings.Load(life); err != nil {
		return fmt.Errorf("read its settings: %w", err)
	}
	defer b.Hub.Attach(r.queue.ID, loop.alarm)()
	defer b.Hub.Listen(settings.Prefix, wake.OfQueue(r.queue.ID, loop.settings.Look))()
	if r.options.Keep > 0 {
		if err := b.Store.rings.KeepAtLeast(life, b.Pool, ring.Outbox, r.options.Keep); err != nil {
			return pgerr.Explain(err)
		}
	}
	side := run.NewGroup(life)
	side.Go(func(ctx context.Context) error { return loop.alarm.Tick(ctx, loop.alarm.Wake) })
	side.Go(loop.settings.Run)
	side.Go(loop.followSettings)
	err = loop.run(life, working)
	side.Stop()
	return errors.Join(err, side.Wait())
}
