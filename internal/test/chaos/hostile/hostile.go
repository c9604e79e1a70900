package hostile

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
)

//go:embed hostile.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "hostile", About: "messages that are meant to do harm, beside good ones",
	Full:  lab.Size{Workers: 2, For: 10 * time.Minute},
	Quick: lab.Size{Workers: 2, For: 40 * time.Second},
	Flags: func(f *flag.FlagSet) {
		f.IntVar(&flags.rate, "rate", 200, "hostile: good messages a second, over all routes")
		f.IntVar(&flags.attacks, "attacks", 20, "hostile: hostile messages a second")
	},
	SQL: sql, Rules: []string{"left", "vanished", "lost", "doubled", "slow", "gap"},
	Run: hostile, Work: work,
}

var flags struct{ rate, attacks int }

const (
	drainWithin  = 3 * time.Minute // for what is left when the attack is over
	quietPart    = 5               // one part in so many of the run is quiet, to measure what is normal
	tickInterval = 50 * time.Millisecond
	least        = 0.5 // how much of its quiet rate each route must keep
	longestGap   = 20 * time.Second
)

func hostile(ctx context.Context, s lab.Settings) error {
	r := &race{sent: map[string]int{}}
	return s.Try(ctx, lab.Trial{
		Prepare: func(ctx context.Context, l *lab.Lab) error {
			r.Lab = l
			return install(ctx, l)
		},
		Places: s.Workers + 1,
		Task: func(place int) any {
			return worker{Gate: place == s.Workers, Seed: s.Seed, Rate: flags.attacks}
		},
		Break: r.run, Judge: r.judge,
	})
}

// install makes the queues and gives the roles their rights.
func install(ctx context.Context, l *lab.Lab) error {
	for endpoint, kinds := range consumed {
		if err := l.Bus.InstallQueue(ctx, endpoint, kinds...); err != nil {
			return err
		}
	}
	operator, err := operate.New(l.Pool, operate.Options{})
	if err == nil {
		err = operator.Queues().InstallRelay(ctx, border, outgoing{}.Kind())
	}
	if err != nil {
		return err
	}
	grants, err := migrations.Grants("", migrations.Roles{Runtime: "hostile_runtime", Sender: "hostile_sender"})
	if err == nil {
		_, err = l.Pool.Exec(ctx, grants)
	}
	return err
}

// race is good traffic and attacks, side by side.
type race struct {
	*lab.Lab

	sent         map[string]int // by route, so far
	all          int            // good messages sent
	quiet, under period
}

type period struct{ begin, end time.Time }

func (p period) rate(n int) float64 { return float64(n) / p.end.Sub(p.begin).Seconds() }

// run sends good messages all the time, and attacks after the quiet part.
func (r *race) run(ctx context.Context, _ *lab.Lab) error {
	a, err := newAttacker(ctx, r)
	if err != nil {
		return err
	}
	defer a.pool.Close()
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	r.quiet = period{time.Now(), time.Now().Add(r.For / quietPart)}
	r.under = period{r.quiet.end, r.quiet.begin.Add(r.For)}
	var owed, owedAttacks float64
	for last := time.Now(); last.Before(r.under.end); {
		if err := run.Sleep(ctx, tickInterval); err != nil {
			return err
		}
		now := time.Now()
		owed += now.Sub(last).Seconds() * float64(flags.rate)
		if now.After(r.under.begin) {
			owedAttacks += now.Sub(last).Seconds() * float64(flags.attacks) / 2 // the gate does the other half
		}
		last = now
		if err := r.sendGood(ctx, int(owed)); err != nil {
			return err
		}
		owed -= float64(int(owed))
		for ; owedAttacks >= 1; owedAttacks-- {
			if err := a.attack(ctx); err != nil {
				return err
			}
		}
	}
	r.Fact("refused", a.refused)
	if err := r.Crew.SayCalm(); err != nil {
		return err
	}
	return r.awaitEmpty(ctx)
}

// warmUp waits until every route has handled its first message.
func (r *race) warmUp(ctx context.Context) error {
	if err := r.sendGood(ctx, len(routes)); err != nil {
		return err
	}
	return lab.Await(ctx, time.Minute, "an effect on every route", func() (bool, error) {
		done := 0
		err := r.Row(ctx, "SELECT count(DISTINCT key) FROM chaos.effect", nil, &done)
		return done == len(routes), err
	})
}

func (r *race) sendGood(ctx context.Context, n int) error {
	for range n {
		route := routes[r.all%len(routes)]
		r.all++
		r.sent[route]++
		if _, err := r.Bus.Send(ctx, goodMessage(route, r.sent[route])); err != nil {
			return fmt.Errorf("send a good message: %w", err)
		}
	}
	return nil
}

// awaitEmpty waits until nothing waits in any queue. Meanwhile some good messages follow: a relay gives a message up
// only when others go through behind it. What is left after some minutes is found by the checks.
func (r *race) awaitEmpty(ctx context.Context) error {
	for deadline := time.Now().Add(drainWithin); time.Now().Before(deadline); {
		left, err := r.Left(ctx)
		if err != nil || left == 0 {
			return err
		}
		if err := r.sendGood(ctx, len(routes)); err != nil {
			return err
		}
		if err := run.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// judge counts. The workers have ended.
func (r *race) judge(ctx context.Context, _ *lab.Lab) error {
	var attacks, handled, discarded, dead int
	if err := r.Exec(ctx, sql.Get("note_waiting")); err != nil {
		return err
	}
	if err := r.Row(ctx, sql.Get("fates"), nil, &attacks, &handled, &discarded, &dead); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"attacks", attacks}, {"handled", handled}, {"discarded", discarded}, {"dead", dead}, {"good", r.all}} {
		r.Fact(f.name, f.n)
	}
	r.Expect(attacks > 0 && dead > 0, "no attack", "%d attacks, %d dead letters: nothing was attacked", attacks, dead)
	for _, route := range routes {
		if err := r.judgeRoute(ctx, route); err != nil {
			return fmt.Errorf("judge route %s: %w", route, err)
		}
	}
	if err := r.CheckEffects(ctx, r.Pool, relayed); err != nil { // a relay may give a message twice
		return err
	}
	if err := r.CheckAll(ctx, r.Pool, "check_left", "check_vanished"); err != nil {
		return err
	}
	return r.printLetters(ctx)
}

func (r *race) judgeRoute(ctx context.Context, route string) error {
	var quiet, under int
	var seconds float64
	if err := r.Exec(ctx, sql.Get("told"), route, r.sent[route]); err != nil {
		return err
	}
	args := []any{route, r.quiet.begin, r.quiet.end, r.under.end}
	if err := r.Row(ctx, sql.Get("rates"), args, &quiet, &under, &seconds); err != nil {
		return err
	}
	normal, attacked := r.quiet.rate(quiet), r.under.rate(under)
	r.Expect(attacked >= least*normal, "slow", "route %s: %.0f/s under attack, %.0f/s in quiet", route, attacked,
		normal)
	gap := time.Duration(seconds * float64(time.Second))
	r.Expect(gap <= longestGap, "gap", "route %s: no effect for %v", route, gap)
	r.Printf("route %s: sent=%d quiet=%.0f/s attacked=%.0f/s gap=%.1fs", route, r.sent[route], normal, attacked,
		seconds)
	return nil
}

// printLetters prints the dead letters of messages that are not hostile: the answer to why a good message was lost.
func (r *race) printLetters(ctx context.Context) error {
	rows, err := r.Pool.Query(ctx, sql.Get("letters"))
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		r.Printf("dead and not hostile: %q", line)
	}
	return err
}
