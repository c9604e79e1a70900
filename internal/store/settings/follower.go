package settings

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
)

// FollowerOptions are the options of a Follower. All are required.
type FollowerOptions struct {
	Store    *Store
	Pool     *pg.Pool
	Endpoint string
	Poll     time.Duration
	Log      *slog.Logger
	Calm     *slog.Logger // for failures that are tried again

	// Reported is called by Report, with the previous and the new settings.
	Reported func(before, now Settings)
}

// Follower caches the settings of one endpoint in this process. Load reads them, and Run keeps them up to date. A
// loop calls Now, works by the result, calls Report, and calls Now again when Changed is closed. Safe for concurrent
// use.
type Follower struct {
	options FollowerOptions
	nudge   run.Nudge

	mu       sync.Mutex // guards the fields below
	set      Settings
	change   chan struct{}
	pauses   int // number of pauses by this process
	reported Settings
	failing  bool // the last read failed
}

// NewFollower returns a Follower that has not read yet.
func NewFollower(o FollowerOptions) *Follower {
	return &Follower{options: o, nudge: run.NewNudge(), change: make(chan struct{})}
}

// Look makes Run read at once, because the setting may have changed.
func (f *Follower) Look() { f.nudge.Send() }

// Run reads at each poll, and after each Look, until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	for run.Wait(ctx, run.Jitter(f.options.Poll), f.nudge) != run.Ended {
		if err := f.Load(ctx); ctx.Err() == nil && f.fails(err != nil) {
			f.options.Calm.Warn("edda: the endpoint's settings were not read", "endpoint", f.options.Endpoint,
				"error", err)
		}
	}
	return nil
}

// fails notes whether a read failed, and reports whether the one before had not.
func (f *Follower) fails(failed bool) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = failed && !f.failing
	f.failing = failed
	return news
}

const loadTimeout = 5 * time.Second

// Load reads the settings, and adds the row if it does not exist. After an error the last settings apply.
func (f *Follower) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	mark := f.ownPauses()
	now, err := f.options.Store.Get(ctx, f.options.Pool, f.options.Endpoint)
	if err != nil {
		return pgerr.Explain(err)
	}
	f.accept(now, mark)
	return nil
}

// ownPauses returns the mark that a caller takes before it reads.
func (f *Follower) ownPauses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pauses
}

// accept stores settings that were read after mark. If this process has paused the endpoint since, they do not
// include the pause: then they are read again.
func (f *Follower) accept(now Settings, mark int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if mark == f.pauses {
		f.become(now)
	} else {
		f.nudge.Send()
	}
}

func (f *Follower) become(now Settings) {
	changed := f.set.Paused != now.Paused || f.set.Concurrency != now.Concurrency
	f.set = now
	if changed {
		close(f.change)
		f.change = make(chan struct{})
	}
}

// Pause is called after this process has paused the endpoint itself. It applies until the process reads the settings
// again.
func (f *Follower) Pause(reason string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pauses++
	if set := f.set; !set.Paused {
		set.Paused, set.Reason, set.PausedAt = true, reason, at
		f.become(set)
	}
}

// Now returns the current settings.
func (f *Follower) Now() Settings {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set
}

// Changed returns a channel that is closed when the settings change. Take it before Now.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change
}

// Report logs the changes, after the process has adopted now.
func (f *Follower) Report(now Settings) {
	f.mu.Lock()
	before := f.reported
	f.reported = now
	f.mu.Unlock()
	switch log, endpoint := f.options.Log, f.options.Endpoint; {
	case now.Paused && !before.Paused:
		log.Warn("edda: endpoint is paused", "endpoint", endpoint, "reason", now.Reason, "since", now.PausedAt,
			"remedy", "edda endpoint resume "+endpoint)
	case !now.Paused && before.Paused:
		log.Info("edda: endpoint resumed", "endpoint", endpoint)
	}
	f.options.Reported(before, now)
}
