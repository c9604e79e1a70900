package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/google/uuid"
)

var errAway = errors.New("the database is away")

// shelf is a register that records its calls with their times, as a story. Each answer is a function, so that it may
// be slow.
type shelf struct {
	mu     sync.Mutex
	begun  time.Time
	story  []string
	epoch  int64
	bids   func(n int) (bool, error)
	renews func(ctx context.Context, n int) (Renewal, error)
	nbid   int
	nrenew int
}

func (s *shelf) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story = append(s.story, fmt.Sprintf("%v ", time.Since(s.begun))+fmt.Sprintf(format, args...))
}

func (s *shelf) bid(context.Context) (Term, bool, error) {
	s.nbid++
	ok, err := true, error(nil)
	if s.bids != nil {
		ok, err = s.bids(s.nbid)
	}
	if ok {
		s.epoch++
	}
	s.note("bid %t", ok)
	return Term{Name: "sweep", Holder: "me/1", Epoch: s.epoch}, ok, err
}

func (s *shelf) renew(ctx context.Context, _ Term) (Renewal, error) {
	s.nrenew++
	answer, err := Renewed, error(nil)
	if s.renews != nil {
		answer, err = s.renews(ctx, s.nrenew)
	}
	if err == nil {
		s.note("renew %d", answer)
	}
	return answer, err
}

func (s *shelf) release(context.Context, Term) (bool, error) {
	s.note("release")
	return true, nil
}

func (s *shelf) close(context.Context) {}

func (s *shelf) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.story, "\n")
}

// last returns the last entry of the story.
func (s *shelf) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.story) == 0 {
		return ""
	}
	_, what, _ := strings.Cut(s.story[len(s.story)-1], " ")
	return what
}

// keep runs a Keeper with the default times over s, in a bubble, until end returns.
func (s *shelf) keep(t *testing.T, o Options, work func(ctx context.Context, t Term) error, end func(k *Keeper)) {
	t.Helper()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s.begun = time.Now()
	enough, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	job := Job{Name: "sweep", Run: func(ctx context.Context, term Term) error {
		ctx, stop := context.WithCancel(ctx)
		defer context.AfterFunc(enough, stop)()
		s.note("begin %d", term.Epoch)
		err := work(ctx, term)
		s.note("return")
		return err
	}}
	k := newKeeper(s, job, o)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	end(k)
	cancel()
	select {
	case err := <-ran:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(24 * time.Hour): // in the bubble's time
		t.Error("the work is not told to end")
		giveUp()
		<-ran
	}
	if t.Failed() {
		t.Logf("story:\n%v\nlog:\n%s", s, &log)
	}
}

// untilEnd is a function that returns as soon as its context ends.
func untilEnd(ctx context.Context, _ Term) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Whatever the database answers, or if it does not answer at all: the trusted time counts from the begin of the last
// attempt that succeeded.
func TestContextEndsWhenTheTrustedTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(ctx context.Context) error{
		"refused": func(context.Context) error { return errAway },
		"no answer until the attempt ends": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"no answer for an hour": func(ctx context.Context) error {
			return run.Sleep(context.WithoutCancel(ctx), time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var renewed time.Time
				s := &shelf{renews: func(ctx context.Context, n int) (Renewal, error) {
					if n == 1 {
						renewed = time.Now()
						return Renewed, run.Sleep(ctx, 2*time.Second) // the database may have counted from the begin
					}
					if err := answer(ctx); err != nil {
						return Lost, err
					}
					return Renewed, nil // an hour late
				}}
				ended := make(chan time.Duration, 9)
				work := func(ctx context.Context, _ Term) error {
					<-ctx.Done()
					ended <- time.Since(renewed)
					if !errors.Is(context.Cause(ctx), ErrLost) {
						t.Errorf("the context ended with %v", context.Cause(ctx))
					}
					return nil
				}
				s.keep(t, Options{}, work, func(*Keeper) {
					if took := <-ended; took != 14*time.Second {
						t.Errorf("the context ended %v after the last renewal was begun, want 14s", took)
					}
				})
			})
		})
	}
}

func TestOneMissedRenewalIsNotFatal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{renews: func(ctx context.Context, n int) (Renewal, error) {
			if n%2 == 1 {
				<-ctx.Done()
				return Lost, ctx.Err()
			}
			return Renewed, nil
		}}
		s.keep(t, Options{}, untilEnd, func(*Keeper) { pass(time.Hour) })
		if s.epoch != 1 {
			t.Errorf("it took %d terms", s.epoch)
		}
	})
}

// Lost means that the row shows the end: there is nothing to wait for, and nothing to release.
func TestLostEndsTheContextAtOnceAndReleasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{
			bids:   func(n int) (bool, error) { return n == 1, nil },
			renews: func(context.Context, int) (Renewal, error) { return Lost, nil },
		}
		s.keep(t, Options{}, func(ctx context.Context, _ Term) error {
			<-ctx.Done()
			if took := time.Since(s.begun); took > 5*time.Second || !errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("the context ended after %v with %v", took, context.Cause(ctx))
			}
			return nil
		}, func(*Keeper) { pass(time.Minute) })
		if strings.Contains(s.String(), "release") {
			t.Error("a lease that was lost was released")
		}
	})
}

// The next bidder must find the work of the last holder stopped.
func TestReleaseComesAfterTheReturn(t *testing.T) {
	t.Parallel()
	const slow = 25 * time.Second // within Stop, and longer than a Lease
	work := func(ctx context.Context, _ Term) error {
		<-ctx.Done()
		pass(slow)
		return nil
	}
	for name, c := range map[string]struct {
		renews func(context.Context, int) (Renewal, error)
		end    func(s *shelf)
	}{
		"shutdown": {end: func(*shelf) { pass(7 * time.Second) }},
		"resigning": {renews: func(context.Context, int) (Renewal, error) { return Resigning, nil },
			end: func(s *shelf) {
				pass(32 * time.Second)
			}},
		"doubt": {renews: func(context.Context, int) (Renewal, error) { return Lost, errAway }, end: func(s *shelf) {
			pass(40 * time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{renews: c.renews}
				s.keep(t, Options{}, work, func(*Keeper) { c.end(s) })
				story := s.String()
				returned, released := strings.Index(story, "return"), strings.Index(story, "release")
				if returned < 0 || released < returned {
					t.Errorf("released before the work had returned:\n%s", story)
				}
				// Work that is stopping is still protected.
				if name != "doubt" && strings.Count(story[:returned], "renew") < 5 {
					t.Errorf("not renewed while the work was stopping:\n%s", story)
				}
			})
		})
	}
}

// Other processes must get the lease at some time, but not while this one renews it.
func TestWorkThatDoesNotStopIsLeftToItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		var ended time.Time
		s.keep(t, Options{Stop: 10 * time.Second}, func(ctx context.Context, _ Term) error {
			<-ctx.Done()
			ended = time.Now()
			pass(time.Hour)
			if last := s.last(); last == "release" {
				t.Error("released while the work went on")
			}
			return nil
		}, func(*Keeper) { pass(time.Minute) })
		story := s.String()
		var lastRenewal time.Duration
		for line := range strings.Lines(story) {
			if at, what, _ := strings.Cut(line, " "); strings.HasPrefix(what, "renew") {
				lastRenewal, _ = time.ParseDuration(at)
			}
		}
		if after := lastRenewal - ended.Sub(s.begun); after > 10*time.Second || after < 5*time.Second {
			t.Errorf("the last renewal was %v after the context had ended, want up to 10s", after)
		}
		if strings.Count(story, "begin") != 1 {
			t.Errorf("the work was begun a second time while the first went on:\n%s", story)
		}
	})
}

func TestWhoResignsLeavesTheLeaseToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.renews = func(context.Context, int) (Renewal, error) {
			if s.epoch == 1 {
				return Resigning, nil
			}
			return Renewed, nil
		}
		again := make(chan time.Time, 9)
		s.keep(t, Options{}, func(ctx context.Context, term Term) error {
			if term.Epoch > 1 {
				again <- time.Now()
			}
			<-ctx.Done()
			if term.Epoch == 1 && !errors.Is(context.Cause(ctx), ErrResigned) {
				t.Errorf("the context ended with %v", context.Cause(ctx))
			}
			return nil
		}, func(k *Keeper) {
			pass(time.Second)
			k.Wake() // the notification of the request
			synctest.Wait()
			if d := time.Since(s.begun); s.last() != "release" || d != time.Second {
				t.Errorf("after %v: %s, want a release after 1s", d, s.last())
			}
			released := time.Now()
			k.Wake() // the notification of our own release
			if rest := (<-again).Sub(released); rest < 3*time.Second || rest > 8*time.Second {
				t.Errorf("it bid again after %v", rest)
			}
		})
	})
}

func TestWakeMakesAStandbyBidSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		s := &shelf{bids: func(int) (bool, error) { return free.Load(), nil }}
		s.keep(t, Options{Acquire: time.Hour}, untilEnd, func(k *Keeper) {
			pass(time.Minute)
			free.Store(true)
			k.Wake()
			pass(wakeSpread + time.Millisecond)
			if _, ok := k.Holding(); !ok {
				t.Error("woken in vain")
			}
		})
	})
}

// The bid was won, but the answer took so long that the term may be over.
func TestWinThatComesTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{bids: func(n int) (bool, error) {
			if n == 1 {
				pass(14 * time.Second)
			}
			return n == 1, nil
		}}
		s.keep(t, Options{}, untilEnd, func(*Keeper) { pass(time.Minute) })
		if story := s.String(); strings.Contains(story, "begin") || !strings.Contains(story, "release") {
			t.Errorf("want a release and no work:\n%s", story)
		}
	})
}

func TestWorkThatFailsIsTriedAgainByWhoeverBids(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{bids: func(n int) (bool, error) {
			if n == 1 {
				return false, errAway
			}
			return true, nil
		}}
		s.keep(t, Options{}, func(context.Context, Term) error { return errAway },
			func(*Keeper) { pass(30 * time.Second) })
		story := s.String()
		if n := strings.Count(story, "begin"); n < 4 || n > 9 || n != strings.Count(story, "release") {
			t.Errorf("begun %d times:\n%s", n, story)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]Options{
		"Lease is 50ms": {Lease: 50 * time.Millisecond},
		"Lease is 2h":   {Lease: 2 * time.Hour},
		"Lease is -1s":  {Lease: -time.Second},
		"Renew is 6s":   {Renew: 6 * time.Second},
		"Renew is 1s and Lease is 2s, want a Lease of 3 × Renew": {Lease: 2 * time.Second, Renew: time.Second},
		"Margin is 6s":        {Margin: 6 * time.Second},
		"Acquire is -1ns":     {Acquire: -1},
		"Stop is -1ns":        {Stop: -1},
		"control characters":  {Holder: "a\nb"},
		"at most 200 bytes":   {Holder: strings.Repeat("h", 201)},
		"want 100ms to 1h0m0": {Lease: 1},
	} {
		if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
	o, err := Options{}.withDefaults()
	if err != nil || o.Lease != Default || o.Renew != 5*time.Second || o.Acquire != 5*time.Second ||
		o.Margin != time.Second {
		t.Errorf("the defaults are %+v, %v", o, err)
	}
	if _, err := NewKeeper(nil, nil, Job{Name: "Sweep"}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "lease name") || !strings.Contains(err.Error(), "Run is nil") {
		t.Errorf("a keeper without a name and a function: %v", err)
	}
}

func TestIdentityIsNewEachTime(t *testing.T) {
	t.Parallel()
	a, b := Identity("pod-7"), Identity("pod-7")
	if a == b || !strings.HasPrefix(a, "pod-7/") || len(a) != len("pod-7/")+2*randomBytes {
		t.Errorf("%s, %s", a, b)
	}
	if none, _, _ := strings.Cut(identity("", "a\nb", ""), "/"); uuid.Validate(none) != nil {
		t.Errorf("a process without any name is %s, want a UUID", none)
	}
}

// pass lets time pass in a bubble, regardless of contexts.
func pass(d time.Duration) { <-time.After(d) }
