package bus

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/edda-go/edda/event"
)

// Event is something that has happened, see package event.
type Event = event.Event

// The types of events.
type (
	Handled        = event.Handled
	Retried        = event.Retried
	DeadLettered   = event.DeadLettered
	RunFailed      = event.RunFailed
	Discarded      = event.Discarded
	Conflicted     = event.Conflicted
	ClaimLost      = event.ClaimLost
	BatchDone      = event.BatchDone
	BatchFailed    = event.BatchFailed
	Slowed         = event.Slowed
	Recovered      = event.Recovered
	Paused         = event.Paused
	Resumed        = event.Resumed
	ConcurrencySet = event.ConcurrencySet
	Ingested       = event.Ingested
	Relayed        = event.Relayed
	RelayHeld      = event.RelayHeld
)

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

const (
	mostShownPanic = 500
	mostShownStack = 8 << 10
)

// shown is the beginning of a text that may be long.
func shown(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
