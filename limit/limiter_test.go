package limit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/limit"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
)

func TestNeverMoreThanTheLimit(t *testing.T) {
	w := open(t)
	var (
		now, most, done atomic.Int64
		all             sync.WaitGroup
	)
	work := func(ctx context.Context, s *limit.Slot) error {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		_, err := w.pool.Exec(ctx, "SELECT pg_sleep(0.003)")
		done.Add(1)
		return err
	}
	for n := range 3 {
		l := w.process(func(o *limit.Options) { o.PollOnly = o.PollOnly || n == 2 })
		for range 8 {
			all.Go(func() {
				for range 5 {
					if err := l.Do(t.Context(), "exports", 2, work); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if most.Load() != 2 || done.Load() != 120 {
		t.Errorf("%d at once, want 2; %d calls, want 120", most.Load(), done.Load())
	}
	if held, waiting := w.number("SELECT count(holder) FROM :schema.slot"),
		w.number("SELECT count(*) FROM :schema.ticket"); held+waiting != 0 {
		t.Errorf("%d slots and %d places in the line are left", held, waiting)
	}
}

// If a process has more waiting callers than may be in line, they are served in their order too.
func TestWhoComesFirstIsServedFirst(t *testing.T) {
	w := open(t)
	a, b := w.process(), w.process()
	first := w.acquire(a, 1)
	var (
		mu    sync.Mutex // guards order
		order []int
		all   sync.WaitGroup
		want  []int
	)
	come := func(n int, l *limit.Limiter) {
		want = append(want, n)
		all.Go(func() {
			if err := l.Do(t.Context(), "exports", 1, func(context.Context, *limit.Slot) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, n)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 8 {
		come(n, []*limit.Limiter{a, b}[n%2])
		w.untilWaiting(int64(n) + 1)
	}
	w.release(first)
	all.Wait()
	if !slices.Equal(order, want) {
		t.Errorf("they came as %v, and were served as %v", want, order)
	}
}

// Callers that come at the same moment are in the same order in the line of the database and in their process, so that
// it is enough to wake the first.
func TestLineOfAProcessIsInOrder(t *testing.T) {
	w := open(t)
	l := w.process()
	first := w.acquire(l, 1)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			nothing := func(context.Context, *limit.Slot) error { return nil }
			if err := l.Do(t.Context(), "exports", 1, nothing); err != nil {
				t.Error(err)
			}
		})
	}
	w.untilWaiting(12)
	if n := w.number(`SELECT count(*) FROM (SELECT split_part(holder, '/', -1)::int AS call,
		lag(split_part(holder, '/', -1)::int) OVER (ORDER BY number) AS before FROM :schema.ticket) t
		WHERE call < before`); n != 0 {
		t.Errorf("%d callers overtook others of their process", n)
	}
	w.release(first)
	all.Wait()
}

// A caller that stops waiting leaves the line at once, and does not delay the others.
func TestWaitEndsWithItsContext(t *testing.T) {
	w := open(t)
	a, b := w.process(), w.process()
	first := w.acquire(a, 1)
	cause := errors.New("shop closes")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Acquire(ctx, "exports", 1)
		ended <- err
	}()
	w.untilWaiting(1)
	cancel(cause)
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("%v, want the cause of the context", err)
	}
	if _, err := b.Acquire(ctx, "exports", 1); !errors.Is(err, cause) {
		t.Errorf("%v, want the cause of the context that ended before", err)
	}
	if n := w.number("SELECT count(*) FROM :schema.ticket"); n != 0 {
		t.Errorf("%d places in the line are left", n)
	}
	w.release(first)
}

// In a process many more callers wait than send requests to the database.
func TestCallersBehindTheFirstDoNotAsk(t *testing.T) {
	w := open(t)
	l := w.process()
	first := w.acquire(l, 1)
	var (
		all  sync.WaitGroup
		done atomic.Int64
	)
	for range 100 {
		all.Go(func() {
			if err := l.Do(t.Context(), "exports", 1, func(context.Context, *limit.Slot) error {
				done.Add(1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	w.untilWaiting(16)
	w.release(first)
	for done.Load() < 100 {
		if n := w.number("SELECT count(*) FROM :schema.ticket"); n > 16 {
			t.Fatalf("%d callers of one process ask", n)
		}
	}
	all.Wait()
}

func TestTryAcquireDoesNotWait(t *testing.T) {
	w := open(t)
	a, b := w.process(), w.process()
	first := w.acquire(a, 1)
	if _, err := b.TryAcquire(t.Context(), "exports", 1); !errors.Is(err, limit.ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
	if n := w.number("SELECT count(*) FROM :schema.ticket"); n != 0 {
		t.Errorf("%d places in the line are left", n)
	}
	w.release(first)
	second, err := b.TryAcquire(t.Context(), "exports", 1)
	if err != nil {
		t.Fatal(err)
	}
	if second.Epoch() <= first.Epoch() {
		t.Errorf("the epoch is %d after %d", second.Epoch(), first.Epoch())
	}
	w.release(second)
	w.release(second) // a second call does nothing
}

// The program's number applies until an operator sets a different one.
func TestNumberOfTheProgramAndOfTheOperator(t *testing.T) {
	w := open(t)
	l := w.process()
	first, second := w.acquire(l, 2), w.acquire(l, 2)
	if _, err := l.TryAcquire(t.Context(), "exports", 2); !errors.Is(err, limit.ErrFull) {
		t.Errorf("a third of 2: %v", err)
	}
	third := w.acquire(l, 3) // a new version of the program
	o, err := operate.New(w.pool, operate.Options{Schema: w.schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Limits().Set(t.Context(), "named/exports", 1); err != nil {
		t.Fatal(err)
	}
	w.release(first)
	w.release(second)
	if _, err := w.process().TryAcquire(t.Context(), "exports", 3); !errors.Is(err, limit.ErrFull) {
		t.Errorf("another of the operator's 1: %v", err)
	}
	info, err := o.Limits().Get(t.Context(), "named/exports")
	if err != nil || info.Limit != 1 || info.Declared != 3 || !info.Operated || info.Held != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	w.release(third)
}

// The slot is held for longer than its lease, and no other caller gets it in that time.
func TestSlotIsRenewed(t *testing.T) {
	w := open(t)
	l := w.process(lasting(8 * time.Second))
	s := w.acquire(l, 1)
	end := w.number("SELECT (extract(epoch FROM expires) * 1000)::bigint FROM :schema.slot")
	w.until("it is renewed", func() bool {
		if _, err := w.process().TryAcquire(t.Context(), "exports", 1); !errors.Is(err, limit.ErrFull) {
			t.Fatalf("another got it: %v", err)
		}
		return w.number("SELECT (extract(epoch FROM expires) * 1000)::bigint FROM :schema.slot") > end+3000
	})
	select {
	case <-s.Lost():
		t.Error("it is lost")
	default:
	}
	w.release(s)
}

// A process that cannot renew its slot considers it lost before a second process gets it.
func TestSlotThatIsNotRenewedIsLost(t *testing.T) {
	w := open(t)
	proxy, pool := pgtest.Proxied(t, w.pool)
	l := w.processOn(pool, lasting(2*time.Second))
	proxy.Set(faultproxy.Fault{Statement: "renew"})
	began, lost, followed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- l.Do(t.Context(), "exports", 1, func(ctx context.Context, s *limit.Slot) error {
			close(began)
			<-ctx.Done()
			close(lost)
			<-s.Lost()
			<-followed
			return context.Cause(ctx)
		})
	}()
	<-began
	second := w.acquire(w.process(), 1)
	select {
	case <-lost:
	default:
		t.Error("another has the slot, and its holder was not told")
	}
	close(followed)
	if err := <-ended; !errors.Is(err, limit.ErrLost) || !strings.Contains(err.Error(), "release named/exports") {
		t.Errorf("%v, want ErrLost from the work and from the release", err)
	}
	w.release(second)
}

// told receives the lines that are logged.
type told chan string

func (t told) Write(line []byte) (int, error) {
	t <- string(line)
	return len(line), nil
}

// A row with a different holder ends the work under the slot.
func TestSlotThatAnotherHasIsLost(t *testing.T) {
	w := open(t)
	told := make(told, 1)
	log := slog.New(slog.NewTextHandler(told, nil))
	l := w.process(lasting(4*time.Second), func(o *limit.Options) { o.Logger = log })
	s := w.acquire(l, 1)
	w.exec("UPDATE :schema.slot SET epoch = epoch + 1, expires = expires + interval '1 hour'")
	<-s.Lost()
	select { // the row has ended it, and not the clock
	case line := <-told:
		if !strings.Contains(line, "the slot of a limit was lost") || !strings.Contains(line, "another process has "+
			"it") {
			t.Error(line)
		}
	default:
		t.Error("nothing was logged")
	}
	if err := s.Release(); !errors.Is(err, limit.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
}

func TestGuardProtectsAWrite(t *testing.T) {
	w := open(t)
	a, b := w.process(lasting(3*time.Second)), w.process()
	s := w.acquire(a, 1)
	tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if err := s.Guard(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	w.until("the lease is over", func() bool { // it is not renewed while it is locked
		return w.number("SELECT count(*) FROM :schema.slot WHERE expires < clock_timestamp()") == 1
	})
	if _, err := b.TryAcquire(t.Context(), "exports", 1); !errors.Is(err, limit.ErrFull) {
		t.Errorf("another got the slot while a write is open: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := w.acquire(b, 1)
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		return s.Guard(t.Context(), tx)
	}); !errors.Is(err, limit.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	w.release(second)
	if err := s.Release(); !errors.Is(err, limit.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
}

// The answer to a release may be lost: the slot is free, and Release does not return ErrLost to its holder.
func TestReleaseOfUnknownOutcome(t *testing.T) {
	w := open(t)
	proxy, pool := pgtest.Proxied(t, w.pool)
	s := w.acquire(w.processOn(pool), 1)
	proxy.Set(faultproxy.Fault{Statement: "commit_alone", N: 1, Do: faultproxy.DropReply})
	w.release(s)
	w.release(w.acquire(w.process(), 1))
}

// A release that needs two requests still detects that the slot was lost.
func TestReleaseThatAsksTwiceTellsOfALoss(t *testing.T) {
	w := open(t)
	proxy, pool := pgtest.Proxied(t, w.pool)
	s := w.acquire(w.processOn(pool, lasting(2*time.Second)), 1)
	proxy.Set(faultproxy.Fault{Statement: "renew"}, faultproxy.Fault{Statement: "release", N: 1})
	<-s.Lost()
	second := w.acquire(w.process(), 1)
	if err := s.Release(); !errors.Is(err, limit.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	w.release(second)
}

// With a limit of 1 each grant has a larger epoch than every earlier grant, also if the limit was 2 in between, and the
// remaining slot is then a different one.
func TestEpochOfALimitOfOneGrows(t *testing.T) {
	w := open(t)
	l := w.process()
	last := int64(0)
	for range 3 {
		s := w.acquire(l, 1)
		last = max(last, s.Epoch())
		w.release(s)
	}
	first, second := w.acquire(l, 2), w.acquire(l, 2)
	last = max(last, first.Epoch(), second.Epoch())
	w.release(first)
	if _, err := l.TryAcquire(t.Context(), "exports", 1); !errors.Is(err, limit.ErrFull) { // lowers it
		t.Errorf("%v, want ErrFull", err)
	}
	w.release(second)
	s := w.acquire(l, 1)
	if s.Epoch() <= last {
		t.Errorf("the epoch is %d after %d", s.Epoch(), last)
	}
	w.release(s)
}

func TestPanicGivesTheSlotBack(t *testing.T) {
	w := open(t)
	l := w.process()
	func() {
		defer func() {
			if recover() != "oops" {
				t.Error("it did not panic")
			}
		}()
		_ = l.Do(t.Context(), "exports", 1, func(context.Context, *limit.Slot) error { panic("oops") })
	}()
	s, err := l.TryAcquire(t.Context(), "exports", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.release(s)
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	w := open(t)
	l := w.process()
	for want, call := range map[string]func() error{
		"want 1 to 10000": func() error { _, err := l.Acquire(t.Context(), "exports", 0); return err },
		"n is 10001":      func() error { _, err := l.TryAcquire(t.Context(), "exports", 10001); return err },
		"beginning with a letter": func() error {
			_, err := l.Acquire(t.Context(), "Exports", 1)
			return err
		},
		"the pool is nil": func() error { _, err := limit.New(nil, limit.Options{}); return err },
		"Lease is 1ms": func() error {
			_, err := limit.New(w.pool, limit.Options{Lease: time.Millisecond})
			return err
		},
		"control characters": func() error { _, err := limit.New(w.pool, limit.Options{Holder: "\n"}); return err },
		"edda migrate up": func() error {
			other, err := limit.New(w.pool, limit.Options{Schema: "nowhere"})
			if err == nil {
				_, err = other.Acquire(t.Context(), "exports", 1)
			}
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}
