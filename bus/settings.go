package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/store/settings"
)

// workerSettings are the settings of an endpoint with workers: their number, limited by the connections of its pool.
type workerSettings struct {
	*settings.Follower
	own, most int // the program's number of workers, and the most that the connections allow
}

func (e *Endpoint) newSettings(most int) *workerSettings {
	s := &workerSettings{own: e.options.Concurrency, most: max(e.options.Concurrency, most)}
	s.Follower = e.bus.newFollower(e.name, e.options.Poll, func(before, now settings.Settings) {
		emitPause(e.bus, before, now)
		s.reportConcurrency(e.bus, before, now)
	})
	return s
}

// newFollower makes a follower of the settings of an endpoint or a relay.
func (b *Bus) newFollower(
	endpoint string, poll time.Duration, reported func(before, now settings.Settings),
) *settings.Follower {
	return settings.NewFollower(settings.FollowerOptions{
		Store: b.tables.settings, Pool: b.pool, Endpoint: endpoint, Poll: poll, Log: b.log, Calm: b.calm,
		Reported: reported,
	})
}

func emitPause(b *Bus, before, now settings.Settings) {
	switch {
	case now.Paused && !before.Paused:
		b.hooks.Emit(event.Paused{Endpoint: now.Endpoint, Reason: now.Reason})
	case !now.Paused && before.Paused:
		b.hooks.Emit(event.Resumed{Endpoint: now.Endpoint})
	}
}

func (s *workerSettings) reportConcurrency(b *Bus, before, now settings.Settings) {
	if now.Concurrency == before.Concurrency {
		return
	}
	b.log.Info("edda: concurrency set", "endpoint", now.Endpoint, "concurrency", s.count(now), "before",
		s.count(before))
	if now.Concurrency > s.most {
		b.log.Warn("edda: concurrency is cut to the pool's MaxConns", "endpoint", now.Endpoint, "wanted",
			now.Concurrency, "concurrency", s.most)
	}
	b.hooks.Emit(event.ConcurrencySet{Endpoint: now.Endpoint, Concurrency: s.count(now)})
}

// count returns the number of workers that the endpoint has in this process while it is not paused: at least 1.
func (s *workerSettings) count(set settings.Settings) int {
	if set.Concurrency == 0 {
		return s.own
	}
	return min(set.Concurrency, s.most)
}

// workers returns the number of workers that should run: 0 while the endpoint is paused.
func (s *workerSettings) workers(set settings.Settings) int {
	if set.Paused {
		return 0
	}
	return s.count(set)
}

// announceSettings notifies every process of an endpoint to read its settings. A process that misses the notification
// reads them at its next poll.
func announceSettings(ctx context.Context, b *Bus, queue int) {
	payload := settings.Prefix + wake.Payload(queue)
	b.hub.Hear(payload)
	b.notifier.Send(ctx, payload)
}
