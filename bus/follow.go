package bus

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/settings"
)

// knobs is what is set for an endpoint, as this process knows it. Whoever runs workers asks it how many, and again when
// changed is closed. Safe for concurrent use.
//
// lookAtKnob reads it, follow keeps it up to date, and sayKnob tells the log: the loop that has made its workers as it
// says calls that.
type knobs struct {
	own, most int       // the program's number of workers, and the most that its pool has connections for
	look      run.Nudge // somebody says that the row has changed

	mu      sync.Mutex
	set     settings.Settings // guarded by mu, as is what follows
	change  chan struct{}
	pauses  int               // that this process has made itself
	said    settings.Settings // what the log was told last
	failing bool              // the last look failed
}

func newKnobs(own, most int) *knobs {
	return &knobs{own: own, most: max(own, most), look: run.NewNudge(), change: make(chan struct{})}
}

// now is what is set. A loop asks once and makes its workers as it says: the next moment it may be something else.
func (k *knobs) now() settings.Settings {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set
}

// concurrency is how many workers the endpoint has in this process while it is not paused: at least 1.
func (k *knobs) concurrency() int { return k.count(k.now()) }

func (k *knobs) count(set settings.Settings) int {
	if set.Concurrency == 0 {
		return k.own
	}
	return min(set.Concurrency, k.most)
}

// workers is how many there are to be: 0 while the endpoint is paused.
func (k *knobs) workers(set settings.Settings) int {
	if set.Paused {
		return 0
	}
	return k.count(set)
}

// changed is closed when something is set anew. Take it before asking what is set.
func (k *knobs) changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.change
}

// ownPauses is the mark that a look takes before it reads.
func (k *knobs) ownPauses() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pauses
}

// turn takes over what was read after mark. What was read before a pause of our own does not know of it: then somebody
// looks again.
func (k *knobs) turn(now settings.Settings, mark int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if mark == k.pauses {
		k.become(now)
	} else {
		k.look.Send()
	}
}

func (k *knobs) become(now settings.Settings) {
	changed := k.set.Paused != now.Paused || k.set.Concurrency != now.Concurrency
	k.set = now
	if changed {
		close(k.change)
		k.change = make(chan struct{})
	}
}

// pause is for a process that has paused the endpoint itself, until it reads what others have set.
func (k *knobs) pause(reason string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pauses++
	if set := k.set; !set.Paused {
		set.Paused, set.Reason, set.PausedAt = true, reason, at
		k.become(set)
	}
}

// says takes over what the log is told, and returns what it was told last.
func (k *knobs) says(now settings.Settings) (before settings.Settings) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, k.said = k.said, now
	return before
}

// fails notes whether a look failed, and tells whether that is news.
func (k *knobs) fails(failed bool) (news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	news = failed && !k.failing
	k.failing = failed
	return news
}

// follow looks at the knob at each poll, and when somebody has turned it.
func (e *Endpoint) follow(ctx context.Context) error {
	for run.Wait(ctx, run.Jitter(e.options.Poll), e.knobs.look) != run.Ended {
		if err := e.lookAtKnob(ctx); ctx.Err() == nil && e.knobs.fails(err != nil) {
			e.bus.calm.Warn("edda: what is set for the endpoint was not read", "endpoint", e.name, "error", err)
		}
	}
	return nil
}

const lookTimeout = 5 * time.Second

// lookAtKnob reads what is set for the endpoint, and makes its row when it has none. After an error the last setting
// holds.
func (e *Endpoint) lookAtKnob(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	mark := e.knobs.ownPauses()
	now, err := e.bus.settings.Get(ctx, e.bus.pool, e.name)
	if err != nil {
		return pg.Explain(err)
	}
	e.knobs.turn(now, mark)
	return nil
}

// sayKnob tells what has changed, once the workers are as now says.
func (e *Endpoint) sayKnob(now settings.Settings) {
	before := e.knobs.says(now)
	switch log := e.bus.log; {
	case now.Paused && !before.Paused:
		log.Warn("edda: endpoint is paused", "endpoint", e.name, "reason", now.Reason, "since", now.PausedAt,
			"remedy", "edda endpoint resume "+e.name)
		e.bus.emit(Paused{Endpoint: e.name, Reason: now.Reason})
	case !now.Paused && before.Paused:
		log.Info("edda: endpoint resumed", "endpoint", e.name)
		e.bus.emit(Resumed{Endpoint: e.name})
	}
	if k := e.knobs; now.Concurrency != before.Concurrency {
		e.bus.log.Info("edda: concurrency set", "endpoint", e.name, "concurrency", k.count(now), "before",
			k.count(before))
		if now.Concurrency > k.most {
			e.bus.log.Warn("edda: concurrency is cut to the pool's MaxConns", "endpoint", e.name, "wanted",
				now.Concurrency, "concurrency", k.most)
		}
		e.bus.emit(ConcurrencySet{Endpoint: e.name, Concurrency: k.count(now)})
	}
}
