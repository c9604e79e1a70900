package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// runReplies loses the reply of every third COMMIT, or the COMMIT itself, in turn. The feeder's are lost too.
func runReplies(ctx context.Context, a *arena) error {
	const every, most = 3, 600 // of one proxy
	var faults []faultproxy.Fault
	for n := 1; n <= most; n++ {
		do := faultproxy.DropReply
		if n%2 == 0 {
			do = faultproxy.Swallow
		}
		faults = append(faults, faultproxy.Fault{Statement: "commit", N: n * every, Do: do})
	}
	a.feeder.proxy.Set(faults...)
	for _, s := range a.slots {
		s.proxy.Set(faults...)
	}
	return a.untilFired(ctx, 150, 10, map[string]string{"drop reply": "replies_lost", "swallow": "commits_lost"})
}

// runCuts breaks connections before and after random statements.
func runCuts(ctx context.Context, a *arena) error {
	a.heal()
	for _, s := range a.slots {
		s.proxy.Random(0.02, faultproxy.Cut)
	}
	return a.untilFired(ctx, 300, 40, map[string]string{"cut": "cuts"})
}

// untilFired keeps the workers running until every one of the faults has struck so often, or quick times with -quick.
func (a *arena) untilFired(ctx context.Context, times, quick int, facts map[string]string) error {
	if a.Quick {
		times = quick
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err := a.ensure(); err != nil {
			return err
		}
		count, enough := map[string]int{}, true
		for _, s := range a.slots {
			for _, f := range s.proxy.Fired() {
				_, action, _ := strings.Cut(f, ": ")
				count[action]++
			}
		}
		for action := range facts {
			enough = enough && count[action] >= times
		}
		if enough {
			for action, name := range facts {
				a.Fact(name, count[action])
			}
			return nil
		}
		if err := run.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the faults were not met in time, only %v: %w", count, err)
		}
	}
}

// runRandom kills workers at random moments; only kills in flight count.
func runRandom(ctx context.Context, a *arena) error {
	var kills, looks atomic.Int64
	all := run.NewGroup(ctx)
	a.heal()
	for _, s := range a.slots {
		dice := rand.New(rand.NewPCG(a.Seed, uint64(s.no)))
		all.Go(func(ctx context.Context) error {
			for kills.Load() < int64(a.Kills) {
				if err := s.ensure(); err != nil {
					return err
				}
				if err := run.Sleep(ctx, time.Duration(dice.IntN(60))*time.Millisecond); err != nil {
					return err
				}
				looks.Add(1)
				if killed, _ := s.kill(ctx, onlyInFlight); killed {
					kills.Add(1)
				}
			}
			return nil
		})
	}
	err := all.Wait()
	a.Fact("kills", kills.Load())
	a.Fact("looks", looks.Load())
	return err
}

// runRestarts restarts Postgres under load, fast and immediate in turn.
func runRestarts(ctx context.Context, a *arena) error {
	a.heal()
	if err := a.ensure(); err != nil {
		return err
	}
	inFlight, restarts := 0, flags.restarts
	if a.Quick {
		restarts = min(restarts, 2)
	}
	for n := range restarts {
		hit, err := a.restart(ctx, pgdev.Mode(n%2))
		if err != nil {
			return err
		}
		if hit {
			inFlight++
		}
	}
	a.Fact("restarts", restarts)
	a.Fact("in_flight", inFlight)
	return nil
}

// restart waits until messages are being handled and a batch is open, and then restarts the server.
func (a *arena) restart(ctx context.Context, mode pgdev.Mode) (inFlight bool, err error) {
	before, err := a.number(ctx, "crash_handled")
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(20 * time.Second); !inFlight && time.Now().Before(deadline); {
		if err := run.Sleep(ctx, 5*time.Millisecond); err != nil {
			return false, err
		}
		now, err := a.number(ctx, "crash_handled")
		if err != nil {
			return false, err
		}
		open, err := a.number(ctx, "crash_in_flight", "crash-%")
		if err != nil {
			return false, err
		}
		inFlight = now >= before+200 && open > 0
	}
	a.Expect(inFlight, "stuck", "the workers did not handle 200 messages in 20 s after a restart")
	defer a.Pool.Reset()
	return inFlight, a.Server.Restart(ctx, mode)
}
