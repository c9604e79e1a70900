package handlers

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/saga"
)

// Guest is a function of the user that Edda calls while it holds something shared: a worker, a transaction, a lease.
// Ask calls it. Safe for concurrent use.
type Guest struct {
	Most int32 // calls that may still run past their time; 0 means 1
	away atomic.Int32
}

// Patience is how long Edda waits for a function that should return at once.
const Patience = 5 * time.Second

// ErrAway is the failure of a function that has not returned in time, or was not called because earlier calls of it
// have not returned.
var ErrAway = errors.New("it has not returned")

// Ask calls f, which calls the guest, in a goroutine of its own, and returns the result of f. If f ended otherwise,
// the error is *saga.PanicError, run.ErrExited, or, after the patience, ErrAway. Then f may still run: it must not
// touch memory that its caller uses again, and its result is dropped.
func Ask[T any](g *Guest, patience time.Duration, f func() T) (result T, err error) {
	if g.away.Load() >= max(g.Most, 1) {
		return result, fmt.Errorf("%w since an earlier call, so it was not called", ErrAway)
	}
	c := &asked[T]{of: g, done: make(chan struct{})}
	run.Beside(func() { c.call(f) })
	select {
	case <-c.done:
		return c.result, c.err
	default:
	}
	// The patience has four parts: if the process stalls, only one of them passes in that time, and not the whole.
	const parts = 4
	timer := time.NewTimer(patience / parts)
	defer timer.Stop()
	for part := 1; ; part++ {
		select {
		case <-c.done:
			return c.result, c.err
		case <-timer.C:
			if part == parts {
				if g.away.Add(1); !c.over.CompareAndSwap(false, true) {
					g.away.Add(-1) // it has returned just now
					<-c.done
					return c.result, c.err
				}
				return result, fmt.Errorf("%w within %v", ErrAway, patience)
			}
			timer.Reset(patience / parts)
		}
	}
}

// asked is one call. If the call sets over first, it has a result. If the caller sets over first, the caller has left
// the call.
type asked[T any] struct {
	of     *Guest
	over   atomic.Bool
	done   chan struct{}
	result T
	err    error
}

func (c *asked[T]) call(f func() T) {
	result, err := *new(T), run.ErrExited
	defer func() {
		if v := recover(); v != nil {
			err = &saga.PanicError{Value: v, Stack: debug.Stack()}
		}
		if !c.over.CompareAndSwap(false, true) {
			c.of.away.Add(-1)
			return
		}
		c.result, c.err = result, err
		close(c.done)
	}()
	result = f()
	err = nil
}

// Examined is saga.Examined, protected against the methods of the error. A permanent error stays one.
func (g *Guest) Examined(patience time.Duration, err error) error {
	examined, wrong := Ask(g, patience, func() error { return saga.Examined(err) })
	if wrong == nil {
		return examined
	}
	text, unread := Ask(g, patience, func() string { return fmt.Sprint(err) })
	if unread != nil {
		text = fmt.Sprintf("an error of type %T", err)
	}
	wrong = fmt.Errorf("%s: a method of the error: %w", text, wrong)
	permanent, _ := Ask(g, patience, func() bool { return errors.As(err, new(*saga.PermanentError)) })
	if permanent {
		return saga.Permanent(wrong)
	}
	return wrong
}
