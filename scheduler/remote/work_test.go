package remote_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// notebook is a Reporter that notes what is reported.
type notebook struct {
	mu    sync.Mutex // guards notes
	notes []string
	beat  func(ctx context.Context, n int) error // the answer to the nth, from 1; nil is none
	end   func(ctx context.Context) error
	log   bytes.Buffer
}

func (n *notebook) note(what string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, what)
	for _, note := range n.notes {
		if note == what {
			times++
		}
	}
	return times
}

func (n *notebook) is(want ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Equal(n.notes, want)
}

func (n *notebook) Beat(ctx context.Context, _ remote.Run) error {
	times := n.note("beat")
	if n.beat == nil {
		return nil
	}
	return n.beat(ctx, times)
}

func (n *notebook) End(ctx context.Context, _ remote.Run, failure error) error {
	if failure != nil {
		n.note("failed")
	} else {
		n.note("done")
	}
	if n.end == nil {
		return nil
	}
	return n.end(ctx)
}

func (n *notebook) Log() *slog.Logger { return slog.New(slog.NewTextHandler(&n.log, nil)) }

var (
	someRun    = remote.Run{ID: saga.ID{7}, Attempt: 1}
	errAway    = errors.New("it is away")
	errTooLate = errors.New("the program ends")
)

// Work that nobody wants any more is not begun.
func TestWorkGivesASignBeforeItBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{}
		err := remote.Work(t.Context(), n, someRun, time.Hour, func(context.Context) error {
			n.note("work")
			return nil
		})
		if err != nil || !n.is("beat", "work", "done") {
			t.Errorf("%v, %q", err, n.notes)
		}
		n = &notebook{beat: func(context.Context, int) error { return remote.ErrOver }}
		err = remote.Work(t.Context(), n, someRun, time.Hour, func(context.Context) error {
			n.note("work")
			return nil
		})
		if !errors.Is(err, remote.ErrOver) || !n.is("beat") {
			t.Errorf("%v, %q", err, n.notes)
		}
	})
}

// A first sign of life that fails or hangs, and any other that does, keeps no work from its end.
func TestWorkIsDoneWithoutSignsOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		defer close(thaw)
		hangs := func(context.Context, int) error { <-thaw; return nil } // it ignores its context
		for name, beat := range map[string]func(context.Context, int) error{
			"fails": func(context.Context, int) error { return errAway },
			"hangs": hangs,
			"hangs later": func(ctx context.Context, n int) error {
				if n > 1 {
					return hangs(ctx, n)
				}
				return nil
			},
		} {
			n := &notebook{beat: beat}
			began := time.Now()
			err := remote.Work(t.Context(), n, someRun, time.Second, func(context.Context) error {
				<-time.After(10 * time.Second) // of the bubble: no time passes
				return nil
			})
			n.mu.Lock()
			if err != nil || !slices.Contains(n.notes, "done") || time.Since(began) > 17*time.Second {
				t.Errorf("%s: %v, %q after %v", name, err, n.notes, time.Since(began))
			}
			n.mu.Unlock()
		}
	})
}

// Work that is done is reported although its context has ended; a failure then is not.
func TestWorkThatIsDoneIsReportedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			early   bool // the context ends before the work has, and not in End
			failure error
			away    bool // the other side, for ever
			notes   []string
			want    error
		}{
			{"done", true, nil, false, []string{"beat", "done"}, nil},
			{"done, then the end", false, nil, false, []string{"beat", "done", "done"}, nil},
			{"done, and away", true, nil, true, []string{"beat", "done"}, context.DeadlineExceeded},
			{"failed", true, errAway, false, []string{"beat"}, errTooLate},
		} {
			ctx, end := context.WithCancelCause(t.Context())
			n := &notebook{}
			n.end = func(ctx context.Context) error {
				if !c.early {
					end(errTooLate)
				}
				if c.away {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			began := time.Now()
			err := remote.Work(ctx, n, someRun, time.Hour, func(context.Context) error {
				if c.early {
					end(errTooLate)
				}
				return c.failure
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || !n.is(c.notes...) {
				t.Errorf("%s: %v, %q, want %v, %q", c.name, err, n.notes, c.want, c.notes)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: it took %v", c.name, took)
			}
			end(nil)
		}
	})
}

// Of a series of signs of life that fail the first one is logged.
func TestWorkLogsSignsThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{beat: func(_ context.Context, n int) error {
			if n == 3 || n > 6 { // two series: 1 and 2, and 4 to 6
				return nil
			}
			return errAway
		}}
		err := remote.Work(t.Context(), n, someRun, time.Second, func(context.Context) error {
			<-time.After(time.Minute) // of the bubble: no time passes
			return nil
		})
		const text = "a sign of life of a run was not accepted"
		if said := n.log.String(); err != nil || strings.Count(said, text) != 2 || strings.Count(said, "WARN") != 2 ||
			!strings.Contains(said, errAway.Error()) {
			t.Errorf("%v, the log has\n%s", err, said)
		}
	})
}

// Over HTTP the first sign of life has an answer.
func TestWorkOfARunThatIsOverIsNotBegun(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	s := w.next()
	w.untilBeating(id)
	if err := w.store.Cancel(t.Context(), id, "not needed"); err != nil {
		t.Fatal(err)
	}
	err := w.client.Work(t.Context(), s.Run, time.Hour, func(context.Context) error {
		t.Error("it was called")
		return nil
	})
	if !errors.Is(err, remote.ErrOver) {
		t.Errorf("%v, want ErrOver", err)
	}
	if got := w.state(id); got != scheduler.RunCancelled {
		t.Errorf("the run is %s", got)
	}
}

// A handler without reports is a mistake that is seen where it is made.
func TestHandlerWithoutReportsPanicsAtOnce(t *testing.T) {
	t.Parallel()
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "the reports are nil") {
			t.Errorf("it said %q", said)
		}
	}()
	remote.NewHandler(nil, remote.HandlerOptions{})
}
