package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

// Eight replicas bid all the time. One at a time holds the lease, and each term has its own epoch.
//
// Row X5.
func TestOneOfManyBiddersWins(t *testing.T) {
	w := singleOpen(t)
	const replicas, wanted = 8, 24
	var inside, terms atomic.Int64
	epochs := make(chan int64, 1000)
	for n := range replicas {
		who := string(rune('a' + n))
		w.start(w.replica(w.pool, who, func(term scheduler.Term) error {
			if now := inside.Add(1); now != 1 {
				t.Errorf("%d replicas hold the lease", now)
			}
			defer inside.Add(-1)
			err := term.InTx(term, func(tx pgx.Tx) error { return tx.QueryRow(term, "SELECT 1").Scan(new(int)) })
			epochs <- term.Epoch()
			terms.Add(1)
			w.note("any", "term", term.Epoch())
			return err
		}))
	}
	w.find("any", "term", wanted)
	last := int64(0)
	for range wanted {
		if epoch := <-epochs; epoch <= last {
			t.Errorf("epoch %d came after %d", epoch, last)
		} else {
			last = epoch
		}
	}
}

// If the renewals of a holder fail, for whatever reason, its term ends, and then the next one begins in time.
//
// Row X5.
func TestHungHolderIsFollowedAfterItsEnd(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{
		"renewals swallowed":           faultproxy.Swallow,
		"renewals done, answers lost":  faultproxy.DropReply,
		"renewals hang in the network": faultproxy.Delay(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			w := singleOpen(t)
			proxy, pool := pgtest.Proxied(w.t, w.pool)
			w.start(w.replica(pool, "a", w.holder("a", nil), brief))
			first := w.find("a", "begins", 1)
			proxy.Set(hung(action)...)
			broken := time.Now()
			w.start(w.replica(w.pool, "b", w.holder("b", nil)))
			second, ended := w.find("b", "begins", 1), w.find("a", "ends", 1)
			if second.at.Before(ended.at) || second.epoch != first.epoch+1 {
				t.Errorf("b began with epoch %d, %v before a had ended", second.epoch, ended.at.Sub(second.at))
			}
			// A renewal whose answer is lost still counts, so one more interval is allowed.
			most := briefly + briefly/3 + singleTimes.Acquire*5/4
			if took := second.at.Sub(broken); took > most+2*time.Second {
				t.Errorf("the failover took %v, want %v and what a busy machine adds", took, most)
			}
		})
	}
}

// Row X5.
func TestActiveHolderIsNotFollowed(t *testing.T) {
	w := singleOpen(t)
	terms := make(chan scheduler.Term, 9)
	w.start(w.replica(w.pool, "a", w.holder("a", terms), brief))
	term := <-terms
	w.start(w.replica(w.pool, "b", w.holder("b", nil)))
	select {
	case <-term.Done():
		t.Errorf("the term ended: %v", context.Cause(term))
	case <-time.After(3 * briefly):
	}
	if _, ok := w.seen("b", "begins", 1); ok || w.lease().Epoch != term.Epoch() {
		t.Errorf("the lease was taken from its holder: %+v", w.lease())
	}
}

// If an earlier release deleted the row of the lease, its epochs began anew. A holder of long ago that continues
// finds an epoch equal to its own.
//
// Row X5.
func TestOldHolderIsNotTakenForTheNewOne(t *testing.T) {
	w := singleOpen(t)
	write, count := w.ledger()
	proxy, terms, old := w.leader()
	proxy.Set(hung(faultproxy.Swallow)...) // a loses its connection
	stopB := w.start(w.replica(w.pool, "b", w.holder("b", nil)))
	w.find("b", "begins", 1)
	stopB() // and releases the lease
	w.start(w.replica(w.pool, "c", w.holder("c", terms)))
	present := <-terms
	proxy.Set() // a is connected again
	if present.Epoch() != old.Epoch()+2 {
		t.Errorf("the third term has epoch %d after %d", present.Epoch(), old.Epoch())
	}
	store := func(term scheduler.Term) error {
		return term.InTx(t.Context(), func(tx pgx.Tx) error { return write(tx, term) })
	}
	if err := store(old); !errors.Is(err, scheduler.ErrFenced) {
		t.Errorf("the old holder's write: %v, want ErrFenced", err)
	}
	if err := store(present); err != nil {
		t.Errorf("the new holder's write: %v", err)
	}
	if got := count(); len(got) != 1 || got[present.Epoch()] != 1 {
		t.Errorf("writes by epoch: %v", got)
	}
	if now := w.lease(); !now.Held || now.Epoch != present.Epoch() || !strings.HasPrefix(now.Holder, "c/") {
		t.Errorf("the lease stands at %+v", now)
	}
}

// The clock jumps past the end of the term. For a moment two replicas have a term, but only the writes of one commit.
//
// Row X5.
func TestOldHolderWritesNothingAfterTheClockJumpsForward(t *testing.T) {
	w := singleOpen(t)
	terms := make(chan scheduler.Term, 9)
	w.start(w.replica(w.pool, "a", w.holder("a", terms), func(o *scheduler.SingletonOptions) {
		o.Lease, o.Renew, o.PollOnly = 30*time.Second, 9*time.Second, true // no wake-up reports the jump to it
	}))
	a := <-terms
	w.jump(-time.Hour)
	w.start(w.replica(w.pool, "b", w.holder("b", terms)))
	b := <-terms
	if a.Err() != nil || b.Err() != nil {
		t.Fatalf("there are not two: %v, %v", context.Cause(a), context.Cause(b))
	}
	if err := a.InTx(t.Context(), func(pgx.Tx) error { return nil }); !errors.Is(err, scheduler.ErrFenced) {
		t.Errorf("the old holder's write: %v, want ErrFenced", err)
	}
	if err := b.InTx(t.Context(), func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("the new holder's write: %v", err)
	}
}

// The clock is set back by an hour, so the end of a dead holder's term moves away. A replica still follows it, after
// it has observed no renewal for the time of a Lease.
//
// Row X5.
func TestDeadHolderIsFollowedThoughTheClockJumpsBack(t *testing.T) {
	w := singleOpen(t)
	proxy, pool := pgtest.Proxied(w.t, w.pool)
	w.start(w.replica(pool, "a", w.holder("a", nil), brief))
	first := w.find("a", "begins", 1)
	proxy.Set(hung(faultproxy.Swallow)...)
	w.find("a", "ends", 1)
	w.jump(time.Hour)
	w.start(w.replica(w.pool, "b", w.holder("b", nil), brief))
	if second := w.find("b", "begins", 1); second.epoch <= first.epoch {
		t.Errorf("b began with epoch %d after %d", second.epoch, first.epoch)
	}
}

// The holder stops while its renewal is in flight. The renewal is answered first and the release is sent after it, so
// the renewal can neither revive the released lease nor affect the next term.
//
// Row X5.
func TestReleaseWaitsForARenewalOnItsWay(t *testing.T) {
	w := singleOpen(t)
	proxy, pool := pgtest.Proxied(w.t, w.pool)
	onItsWay, goOn := make(chan struct{}), make(chan struct{})
	proxy.Set(faultproxy.Fault{Statement: "renew", N: 1, Do: faultproxy.Pause(func() { close(onItsWay); <-goOn })})
	stop := w.start(w.replica(pool, "a", w.holder("a", nil)))
	first := w.find("a", "begins", 1)
	w.start(w.replica(w.pool, "b", w.holder("b", nil)))
	<-onItsWay
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	w.find("a", "ends", 1)
	if now := w.lease(); !now.Held || now.Epoch != first.epoch {
		t.Errorf("released with a renewal on its way: %+v", now)
	}
	close(goOn)
	<-stopped
	second := w.find("b", "begins", 1)
	if now := w.lease(); second.epoch != first.epoch+1 || now.Epoch != second.epoch || !now.Held {
		t.Errorf("b began with epoch %d after %d; the lease stands at %+v", second.epoch, first.epoch, now)
	}
	if _, lost := w.seen("b", "ends", 1); lost {
		t.Error("the next holder lost its term to the last one's renewal")
	}
}

// A loop that continues after its term has ended is not followed at once, but when its lease has expired. From then
// on nothing that it writes is committed.
//
// Row X5.
func TestLoopThatDoesNotStopIsNotReleased(t *testing.T) {
	w := singleOpen(t)
	let, begun := make(chan struct{}), make(chan scheduler.Term, 1)
	stubborn := func(term scheduler.Term) error {
		begun <- term
		<-term.Done()
		w.note("a", "should end", term.Epoch())
		<-let
		return nil
	}
	stop := w.start(w.replica(w.pool, "a", stubborn, brief,
		func(o *scheduler.SingletonOptions) { o.Stop = 200 * time.Millisecond }))
	term := <-begun
	w.start(w.replica(w.pool, "b", w.holder("b", nil)))
	if err := w.leases.Resign(t.Context(), w.lease().Name); err != nil {
		t.Fatal(err)
	}
	asked := w.find("a", "should end", 1)
	b := w.find("b", "begins", 1)
	if wait := b.at.Sub(asked.at); wait < briefly-briefly/3 {
		t.Errorf("b began %v after a was to end, and a had not ended", wait)
	}
	if logged := w.logged(); strings.Contains(logged, `msg="edda: lease released" lease=singleton/sweep holder=a/`) ||
		!strings.Contains(logged, "does not stop") {
		t.Error("the log tells of a release, or not of the loop")
	}
	if err := term.InTx(t.Context(), func(pgx.Tx) error { return nil }); !errors.Is(err, scheduler.ErrFenced) {
		t.Errorf("the write of the loop that goes on: %v, want ErrFenced", err)
	}
	close(let)
	stop()
}

// The leader is paused inside its guarded write, and its lease expires. No new term begins until the write has ended.
//
// Row X6.
func TestNewTermWaitsForTheOldLeadersWrite(t *testing.T) {
	w := singleOpen(t)
	write, count := w.ledger()
	proxy, terms, old := w.leader()
	proxy.Set(hung(faultproxy.Swallow)...)
	<-old.Done()
	err := old.InTx(t.Context(), func(tx pgx.Tx) error {
		w.start(w.replica(w.pool, "b", w.holder("b", terms)))
		for l := w.lease(); l.Held && l.Epoch == old.Epoch(); l = w.lease() {
			<-time.After(20 * time.Millisecond)
		}
		<-time.After(5 * singleTimes.Acquire)
		if _, ok := w.seen("b", "begins", 1); ok {
			t.Error("a new term began beside the old one's write")
		}
		err := write(tx, old)
		w.note("a", "commits", old.Epoch())
		return err
	})
	if err != nil {
		t.Fatalf("the write of the only leader: %v", err)
	}
	if b, a := w.find("b", "begins", 1), w.find("a", "commits", 1); b.at.Before(a.at) {
		t.Errorf("b began %v before a had committed", a.at.Sub(b.at))
	}
	present := <-terms
	if err := old.InTx(t.Context(), func(pgx.Tx) error { return nil }); !errors.Is(err, scheduler.ErrFenced) {
		t.Errorf("the old leader's next write: %v, want ErrFenced", err)
	}
	if err := present.InTx(t.Context(), func(tx pgx.Tx) error { return write(tx, present) }); err != nil {
		t.Error(err)
	}
	if got := count(); got[old.Epoch()] != 1 || got[present.Epoch()] != 1 {
		t.Errorf("writes by epoch: %v, want one of each term, one after the other", got)
	}
}

// The leader never returns to its guarded write. The server rolls it back, and the new leader begins.
//
// Row X6.
func TestFrozenLeadersWriteIsUndone(t *testing.T) {
	w := singleOpen(t)
	write, count := w.ledger()
	proxy, terms, old := w.leader()
	err := old.InTx(t.Context(), func(tx pgx.Tx) error {
		if err := write(tx, old); err != nil {
			return err
		}
		proxy.Set(hung(faultproxy.Swallow)...)
		w.start(w.replica(w.pool, "b", w.holder("b", terms)))
		w.find("b", "begins", 1)
		return nil
	})
	if err == nil {
		t.Error("the frozen leader committed after another had begun")
	}
	present := <-terms
	if got := count(); len(got) != 0 || present.Epoch() != old.Epoch()+1 {
		t.Errorf("writes by epoch: %v; the new one is %d after %d", got, present.Epoch(), old.Epoch())
	}
}
