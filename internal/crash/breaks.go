package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/pgdev/faultproxy"
	"github.com/edda-go/edda/internal/run"
)

// runReplies loses the reply of every third COMMIT, or the COMMIT itself, in turn. The feeder's are lost too.
func runReplies(ctx context.Context, l *lab, s settings) (line, details string, err error) {
	const every, most = 3, 600 // of one proxy
	var faults []faultproxy.Fault
	for n := 1; n <= most; n++ {
		do := faultproxy.DropReply
		if n%2 == 0 {
			do = faultproxy.Swallow
		}
		faults = append(faults, faultproxy.Fault{Statement: "commit", N: n * every, Do: do})
	}
	l.feedProxy.Set(faults...)
	for _, slot := range l.slots {
		slot.proxy.Set(faults...)
	}
	want := 150
	if s.quick {
		want = 10
	}
	dropped, swallowed := 0, 0
	err = l.untilFired(ctx, func(fired []string) bool {
		dropped, swallowed = countFired(fired, "drop reply"), countFired(fired, "swallow")
		return min(dropped, swallowed) >= want
	})
	return fmt.Sprintf("replies_lost=%d commits_lost=%d", dropped, swallowed), "", err
}

// runCuts breaks connections before and after random statements.
func runCuts(ctx context.Context, l *lab, s settings) (line, details string, err error) {
	for _, slot := range l.slots {
		slot.proxy.Set()
		slot.proxy.Random(0.02, faultproxy.Cut)
	}
	want := 300
	if s.quick {
		want = 40
	}
	cuts := 0
	err = l.untilFired(ctx, func(fired []string) bool {
		cuts = countFired(fired, "cut")
		return cuts >= want
	})
	return fmt.Sprintf("cuts=%d", cuts), "", err
}

// untilFired keeps the workers running until the faults that have struck are enough.
func (l *lab) untilFired(ctx context.Context, enough func(fired []string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err := l.ensure(); err != nil {
			return err
		}
		var fired []string
		for _, s := range l.slots {
			fired = append(fired, s.proxy.Fired()...)
		}
		if enough(fired) {
			return nil
		}
		if err := run.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the faults were not met in time: %w", err)
		}
	}
}

func countFired(fired []string, action string) (n int) {
	for _, f := range fired {
		if strings.HasSuffix(f, ": "+action) {
			n++
		}
	}
	return n
}

// runRandom kills workers at random moments; only kills in flight count.
func runRandom(ctx context.Context, l *lab, s settings) (line, details string, err error) {
	var kills, looks atomic.Int64
	all := run.NewGroup(ctx)
	for _, slot := range l.slots {
		slot.proxy.Set()
		dice := rand.New(rand.NewPCG(l.seed, uint64(slot.no)))
		all.Go(func(ctx context.Context) error {
			for kills.Load() < int64(s.kills) {
				if err := slot.ensure(); err != nil {
					return err
				}
				if err := run.Sleep(ctx, time.Duration(dice.IntN(60))*time.Millisecond); err != nil {
					return err
				}
				looks.Add(1)
				if killed, _ := slot.kill(ctx, onlyInFlight); killed {
					kills.Add(1)
				}
			}
			return nil
		})
	}
	err = all.Wait()
	return fmt.Sprintf("kills=%d in_flight=%d looks=%d", kills.Load(), kills.Load(), looks.Load()), "", err
}

// runRestarts restarts Postgres under load, fast and immediate in turn.
func runRestarts(ctx context.Context, l *lab, s settings) (line, details string, err error) {
	for _, slot := range l.slots {
		slot.proxy.Set()
	}
	if err := l.ensure(); err != nil {
		return "", "", err
	}
	inFlight := 0
	count := map[pgdev.Mode]int{}
	for n := range s.restarts {
		mode := pgdev.Mode(n % 2)
		hit, err := l.restart(ctx, mode)
		if err != nil {
			return "", "", err
		}
		count[mode]++
		if hit {
			inFlight++
		}
	}
	return fmt.Sprintf("restarts=%d fast=%d immediate=%d in_flight=%d", s.restarts, count[pgdev.Fast],
		count[pgdev.Immediate], inFlight), "", nil
}

// restart waits until messages are being handled and a batch is open, and then restarts the server.
func (l *lab) restart(ctx context.Context, mode pgdev.Mode) (inFlight bool, err error) {
	before, err := number(ctx, l.pool, "crash_handled")
	if err != nil {
		return false, err
	}
	deadline := time.Now().Add(20 * time.Second)
	for !inFlight && time.Now().Before(deadline) {
		if err := run.Sleep(ctx, 5*time.Millisecond); err != nil {
			return false, err
		}
		now, err := number(ctx, l.pool, "crash_handled")
		if err != nil {
			return false, err
		}
		open, err := number(ctx, l.pool, "crash_in_flight", "crash-%")
		if err != nil {
			return false, err
		}
		inFlight = now >= before+200 && open > 0
	}
	if !inFlight {
		l.violate(violation{rule: "stuck", what: "the workers did not handle 200 messages in 20 s after a restart"})
	}
	if err := l.deadlocks.restarting(ctx, l.pool); err != nil {
		return inFlight, err
	}
	if err := l.server.Restart(ctx, mode); err != nil {
		return inFlight, err
	}
	l.pool.Reset()
	return inFlight, l.deadlocks.restarted(ctx, l.pool)
}
