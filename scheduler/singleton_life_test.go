package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

var errSweep = errors.New("the shelf fell down")

// A release sends a notification, so the next replica bids at once.
func TestSingletonIsTakenOverAtOnce(t *testing.T) {
	w := singleOpen(t)
	rarely := func(o *scheduler.SingletonOptions) { o.Lease, o.Acquire = time.Hour, time.Hour }
	stop := w.start(w.replica(w.pool, "a", w.holder("a", nil), rarely))
	w.find("a", "begins", 1)
	b := w.replica(w.pool, "b", w.holder("b", nil), rarely)
	w.start(b)
	// b has bid once when it began, and once more after a notification
	for strings.Count(w.logged(), "another process holds the lease") < 2 {
		<-time.After(10 * time.Millisecond)
	}
	stop()
	ended, began := w.find("a", "ends", 1), w.find("b", "begins", 1)
	if began.epoch != ended.epoch+1 || began.at.Before(ended.at) {
		t.Errorf("b began %v after a had ended, with epoch %d after %d", began.at.Sub(ended.at), began.epoch,
			ended.epoch)
	}
	if err := w.leases.Resign(t.Context(), "singleton/sweep"); err != nil {
		t.Error(err)
	}
	w.find("b", "ends", 1)
	if err := w.leases.Resign(t.Context(), "singleton/none"); !errors.Is(err, scheduler.ErrNotHeld) {
		t.Errorf("resign what nobody has: %v", err)
	}
}

// Without LISTEN the lease is acquired at the next bid.
func TestSingletonThatOnlyPolls(t *testing.T) {
	w := singleOpen(t)
	polls := func(o *scheduler.SingletonOptions) { o.PollOnly = true }
	stop := w.start(w.replica(w.pool, "a", w.holder("a", nil), polls))
	w.find("a", "begins", 1)
	b := w.replica(w.pool, "b", w.holder("b", nil), polls)
	w.start(b)
	stop()
	w.find("b", "begins", 1)
	if _, more := b.Connections(); more != 0 {
		t.Errorf("%d connections", more)
	}
}

// A panic, an error, or runtime.Goexit ends a term, but neither the process nor the Singleton.
func TestSingletonOutlivesItsFunction(t *testing.T) {
	w := singleOpen(t)
	s := w.replica(w.pool, "a", func(term scheduler.Term) error {
		w.note("a", "begins", term.Epoch())
		switch term.Epoch() {
		case 1:
			panic("no shelf")
		case 2:
			return errSweep
		case 3:
			runtime.Goexit()
		}
		<-term.Done()
		return nil
	})
	w.start(s)
	if fourth := w.find("a", "begins", 4); fourth.epoch != 4 {
		t.Errorf("the fourth term has epoch %d", fourth.epoch)
	}
	logged := w.logged()
	for _, want := range []string{`level=ERROR msg="edda: the function under a lease panicked"`, "no shelf",
		"singleton_life_test.go", "level=WARN", errSweep.Error(), "ended its goroutine"} {
		if !strings.Contains(logged, want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if h := s.Health(); h.Acquired != 4 || h.Released != 3 || h.Lost != 0 {
		t.Errorf("%+v", h)
	}
}

// A stop does not wait for the function of a singleton that never returns. Log and error name it, and a second Run
// fails.
func TestSingletonEndsWithoutAFunctionThatNeverReturns(t *testing.T) {
	w := singleOpen(t)
	begun, returns := make(chan struct{}), make(chan struct{})
	s := w.replica(w.pool, "a", func(scheduler.Term) error { close(begun); <-returns; return nil },
		func(o *scheduler.SingletonOptions) { o.Stop = time.Second })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-begun
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, bus.ErrDrain) || !strings.Contains(err.Error(),
			"not waited for: the function of singleton/sweep for ") {
			t.Errorf("Run returned %v", err)
		}
	case <-time.After(pgdev.Patience(10 * time.Second)):
		t.Error("Run waits for the function")
	}
	if err := s.Run(t.Context()); !errors.Is(err, scheduler.ErrRunning) {
		t.Errorf("another Run, while the function runs: %v", err)
	}
	logged := w.logged()
	for _, want := range []string{
		`level=INFO msg="edda: waiting for handlers before the end" name=singleton/sweep handlers="[the function of `,
		`level=WARN msg="edda: Run returns while handlers still run" name=singleton/sweep handlers="[the function of `,
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	close(returns)
}

// Health returns the holder on every replica, without a query. Terms are logged at Info, and repeated events at Debug.
func TestSingletonTellsHowItStands(t *testing.T) {
	w := singleOpen(t)
	terms := make(chan scheduler.Term, 9)
	a := w.replica(w.pool, "a", w.holder("a", terms))
	if h := a.Health(); h.Holding || h.Epoch != 0 || h.Holder != "" || h.Lease != "singleton/sweep" ||
		!h.TrustedUntil.IsZero() {
		t.Errorf("before it runs: %+v", h)
	}
	stop := w.start(a)
	term := <-terms
	b := w.replica(w.pool, "b", w.holder("b", nil))
	w.start(b)
	for b.Health().Epoch != term.Epoch() {
		<-time.After(10 * time.Millisecond)
	}
	mine, theirs, now := a.Health(), b.Health(), w.lease()
	if !mine.Holding || mine.Holder != mine.Self || mine.Epoch != term.Epoch() || mine.Acquired != 1 ||
		time.Until(mine.TrustedUntil) <= 0 || time.Until(mine.TrustedUntil) > singleTimes.Lease {
		t.Errorf("the holder: %+v", mine)
	}
	if theirs.Holding || theirs.Holder != mine.Self || theirs.Acquired != 0 || !theirs.TrustedUntil.IsZero() ||
		theirs.Self == mine.Self {
		t.Errorf("the other: %+v", theirs)
	}
	if !now.Held || now.Holder != mine.Self || now.Epoch != term.Epoch() ||
		now.Expires.Sub(now.Now) > singleTimes.Lease {
		t.Errorf("the database: %+v", now)
	}
	for !strings.Contains(w.logged(), "lease renewed") {
		<-time.After(10 * time.Millisecond)
	}
	stop()
	if h := a.Health(); h.Holding || h.Released != 1 || !h.TrustedUntil.IsZero() {
		t.Errorf("after its end: %+v", h)
	}
	w.find("b", "begins", 1)
	for _, want := range []string{
		`level=INFO msg="edda: singleton stands by" lease=singleton/sweep self=a/`,
		`level=INFO msg="edda: lease acquired" lease=singleton/sweep holder=a/[0-9a-f]+ epoch=1`,
		`level=DEBUG msg="edda: lease renewed" lease=singleton/sweep epoch=1`,
		`level=DEBUG msg="edda: another process holds the lease" lease=singleton/sweep self=b/[0-9a-f]+ ` +
			`holder=a/[0-9a-f]+ epoch=1`,
		`level=INFO msg="edda: lease released" lease=singleton/sweep holder=a/[0-9a-f]+ epoch=1 was_ours=true`,
		`level=INFO msg="edda: lease acquired" lease=singleton/sweep holder=b/[0-9a-f]+ epoch=2`,
	} {
		if !regexp.MustCompile(want).MatchString(w.logged()) {
			t.Errorf("the log has no %s", want)
		}
	}
}

// A holder whose lease a different process has acquired logs that at Info, and stands by again.
func TestSingletonTellsOfALoss(t *testing.T) {
	w := singleOpen(t)
	a := w.replica(w.pool, "a", w.holder("a", nil))
	w.start(a)
	w.find("a", "begins", 1)
	w.exec(
		"UPDATE :schema.lease SET holder = 'b/1', epoch = epoch + 1, expires = clock_timestamp() + interval '1 hour'")
	w.find("a", "ends", 1)
	for a.Health().Holding {
		<-time.After(10 * time.Millisecond)
	}
	if h := a.Health(); h.Lost != 1 || h.Released != 0 {
		t.Errorf("%+v", h)
	}
	want := `level=INFO msg="edda: lease lost" lease=singleton/sweep holder=a/[0-9a-f]+ epoch=1`
	if !regexp.MustCompile(want).MatchString(w.logged()) {
		t.Errorf("the log has no %s", want)
	}
}

// Only the holder's sweeps write. Health has the duration of a sweep, and a sweep that takes too long is logged.
func TestSweepRunsOnTheHolderAlone(t *testing.T) {
	w := singleOpen(t)
	write, count := w.ledger()
	sweep := func(who string) func(scheduler.Term) error {
		return scheduler.Sweep(5*time.Millisecond, func(term scheduler.Term) error {
			err := term.InTx(term, func(tx pgx.Tx) error {
				err := errors.Join(write(tx, term), write(tx, term))
				<-time.After(6 * time.Millisecond)
				return err
			})
			w.note(who, "swept", term.Epoch())
			return err
		})
	}
	a := w.replica(w.pool, "a", sweep("a"))
	stop := w.start(a)
	w.find("a", "swept", 1)
	b := w.replica(w.pool, "b", sweep("b"))
	w.start(b)
	for b.Health().Epoch == 0 { // until it has bid, and lost
		<-time.After(10 * time.Millisecond)
	}
	w.find("a", "swept", count()[1]/2+10) // a sweep writes two rows
	if _, ok := w.seen("b", "swept", 1); ok {
		t.Error("the other swept too")
	}
	last := a.Health().Swept
	if last.Every != 5*time.Millisecond || last.Took < last.Every || time.Since(last.Ended) > time.Minute {
		t.Errorf("the last sweep: %+v", last)
	}
	if !strings.Contains(w.logged(), `level=WARN msg="edda: a sweep took longer than its interval" `+
		`lease=singleton/sweep`) {
		t.Error("nothing is said of sweeps that take longer than their interval")
	}
	stop()
	w.find("b", "swept", 3)
	if got := count(); got[1] < 20 || got[2] < 6 || len(got) != 2 {
		t.Errorf("rows by epoch: %v", got)
	}
}

func TestSweepThatFailsEndsItsTerm(t *testing.T) {
	w := singleOpen(t)
	w.start(w.replica(w.pool, "a", scheduler.Sweep(time.Hour, func(term scheduler.Term) error {
		w.note("a", "swept", term.Epoch())
		return errSweep
	})))
	if second := w.find("a", "swept", 2); second.epoch != 2 {
		t.Errorf("epoch %d", second.epoch)
	}
	if err := scheduler.Sweep(0, func(scheduler.Term) error { return nil })(nil); err == nil ||
		!strings.Contains(err.Error(), "more than 0") {
		t.Errorf("a sweep every 0: %v", err)
	}
}

func TestSingletonNeedsItsSchema(t *testing.T) {
	t.Parallel()
	s, err := scheduler.NewSingleton(pgdev.Pool(t), "sweep", func(scheduler.Term) error { return nil },
		scheduler.SingletonOptions{Schema: pgdev.Schema(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Check": s.Check(t.Context()), "Run": s.Run(t.Context())} {
		if !errors.Is(err, migrations.ErrNotMigrated) {
			t.Errorf("%s in a schema that is not there: %v", what, err)
		}
	}
}
