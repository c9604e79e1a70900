package bus

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// Event is something that has happened. The events of a batch are emitted together by its worker, after the commit that
// makes them true and before the worker takes again: first the attempts that failed and were repeated within the batch,
// then what became of each message, in the order of the batch, then BatchDone. Workers emit at the same time, so
// Options.Events must be safe for concurrent use; while it runs, its worker does nothing else. A process that dies
// between the commit and the call emits nothing, and an event whose commit had an unknown outcome is not emitted:
// events are for people and graphs, and no place for effects.
//
// A panic of Options.Events costs its event and nothing else. Info.Kind of an event is legible: a kind that is no name
// (saga.CheckName), which a stranger can write, is escaped and cut.
type Event interface{ event() }

// Handled: a message was consumed and its effects are committed. It is not emitted for a message that was discarded,
// such as a timeout that was cancelled on its way.
type Handled struct {
	Endpoint string
	Info     saga.Info
	Saga     string        // "" for a plain handler
	Key      string        // of the instance
	Step     time.Duration // the handler's own time
	Critical time.Duration // from when the message was sent, or due, to its commit, by the database's clock
}

// Retried: an attempt failed and another follows: within the same batch or at once when Delay is 0, else after Delay.
// Emitted once for each such attempt; Info.Attempt is its number.
type Retried struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Delay    time.Duration
}

// DeadLettered: a message was given up and stored with its bytes. Emitted once, with the error of the last attempt and
// the rule that ended it.
type DeadLettered struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
}

// RunFailed: a message that a manifest emitted was given up. It is emitted in the place of DeadLettered, for the
// message is not stored: its run (Info.Fire) has the error, and is sent again while its manifest has retries. With
// Final it is dead at once, since another attempt would end alike.
type RunFailed struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
	Final    bool
}

// Discarded: a message was consumed without effect, and the reason stored: its handler or the policy said so, or there
// was no instance for it.
type Discarded struct {
	Endpoint string
	Info     saga.Info
	Reason   string
}

// Conflicted: somebody else changed the instance first; the message is still in the queue, or back in it. Emitted after
// the batch has committed what it did not lose.
type Conflicted struct {
	Endpoint string
	Info     saga.Info
	Saga     string
	Key      string
}

// ClaimLost: a leased endpoint may no longer be the one that has a message: its lease could not be extended, or
// somebody else has claimed it. The message is in the queue, or has been ended by another process; what its handler
// sent here is not written.
type ClaimLost struct {
	Endpoint string
	Info     saga.Info
}

// BatchDone: one transaction of an endpoint has committed. Emitted behind the events of its messages, and not for a
// take that found nothing to do.
type BatchDone struct {
	Endpoint string
	Taken    int // messages whose rows were locked
	Handled  int
	Left     int // stayed in the queue
	Took     time.Duration
}

// BatchFailed: one transaction was rolled back. Emitted when that is known, before the worker pauses. All of its
// messages are still in the queue, unless the error is that of a COMMIT whose reply was lost.
type BatchFailed struct {
	Endpoint string
	Taken    int
	Err      error
}

// Slowed: nothing has succeeded for a while, so the endpoint of this process now tries one message at a time. Emitted
// by the worker whose batch was the last of the failures.
type Slowed struct {
	Endpoint string
	Failures int   // attempts that have failed since the last success
	Err      error // the last of them
}

// Recovered: a message was handled, so the endpoint of this process that was slow goes on with all its workers.
type Recovered struct {
	Endpoint string
	SlowFor  time.Duration
}

// Paused: this process has seen that the endpoint is paused, and takes no more messages; those that it has in hand are
// finished. Emitted at the start of a Run too.
type Paused struct {
	Endpoint string
	Reason   string
}

// Resumed: this process has seen that the endpoint is not paused any more.
type Resumed struct{ Endpoint string }

// ConcurrencySet: this process has seen that somebody set the endpoint's number of workers, or gave the program its own
// number back. Emitted at the start of a Run too, when a number is set.
type ConcurrencySet struct {
	Endpoint    string
	Concurrency int // that this process has from now on, while the endpoint is not paused
}

// Ingested: one Bus.Ingest has committed.
type Ingested struct {
	Source   string
	Endpoint string // "" where they were published
	Accepted int
	Repeated int // were there before
	Unwanted int // events without a subscriber
	Dead     int
	Unnamed  int // of all these, how many had no id
}

// Relayed: a relay has given messages to the other side and deleted them here, in one transaction.
type Relayed struct {
	Endpoint string // the relay's name
	Messages int
	Bytes    int64 // of their bodies
	// how long the one that waited longest had waited, from when it was sent, or due, to the commit; by the database's
	// clock
	Lag     time.Duration
	Forward time.Duration // the time of forward alone, failures included
}

// RelayHeld: this process has begun or ceased to be the one that relays.
type RelayHeld struct {
	Endpoint string
	Holding  bool
}

func (Handled) event()        {}
func (Retried) event()        {}
func (DeadLettered) event()   {}
func (RunFailed) event()      {}
func (Discarded) event()      {}
func (Conflicted) event()     {}
func (ClaimLost) event()      {}
func (BatchDone) event()      {}
func (BatchFailed) event()    {}
func (Slowed) event()         {}
func (Recovered) event()      {}
func (Paused) event()         {}
func (Resumed) event()        {}
func (ConcurrencySet) event() {}
func (Relayed) event()        {}
func (Ingested) event()       {}
func (RelayHeld) event()      {}

// emit tells Options.Events of e. A panic of that function must not cost a process: it would cost the next one, too.
func (b *Bus) emit(e Event) {
	if b.events == nil {
		return
	}
	defer b.panics.recovered(b.log, e)
	b.events(e)
}

const panicWarns = time.Minute // between two warnings of panics

// panics counts those of a function that is called all the time, and says so now and then.
type panics struct {
	mu    sync.Mutex
	count int       // since the last warning; guarded by mu
	told  time.Time // guarded by mu
}

// recovered is deferred by the caller of the function.
func (p *panics) recovered(log *slog.Logger, e Event) {
	v := recover()
	if v == nil {
		return
	}
	p.mu.Lock()
	p.count++
	count, say := p.count, time.Since(p.told) >= panicWarns
	if say {
		p.count, p.told = 0, time.Now()
	}
	p.mu.Unlock()
	if say {
		log.Warn("edda: Options.Events panicked", "event", fmt.Sprintf("%T", e), "panics", count,
			"panic", shown(fmt.Sprint(v), mostShownPanic), "stack", shown(string(debug.Stack()), mostShownStack))
	}
}
