package exchange

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
)

//go:embed statements.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "exchange", About: "programs of watermill-sql and of Edda, killed with a transaction open",
	Full:  lab.Size{Kills: 40},
	Quick: lab.Size{Kills: 4},
	SQL:   sql, Rules: []string{"lost", "doubled", "miscounted", "given up", "left"},
	Run: exchange, Work: work,
}

// crew is what the process of each place does.
var crew = []string{"endpoint", "endpoint", "router", "router", "subscriber", "subscriber", "publisher"}

// eachKill is how many messages there are for a kill.
const eachKill = 500

func exchange(ctx context.Context, s lab.Settings) error {
	total := eachKill * (s.Kills + 2)
	return s.Try(ctx, lab.Trial{
		Server: pgdev.Options{Durable: true},
		Prepare: func(ctx context.Context, l *lab.Lab) error {
			l.Fact("messages", total)
			return prepare(ctx, l, total)
		},
		Places: len(crew),
		Task:   func(place int) any { return task{Role: crew[place], Total: total} },
		Break:  func(ctx context.Context, l *lab.Lab) error { return kill(ctx, l, total) },
		Judge: func(ctx context.Context, l *lab.Lab) error {
			if err := l.CheckEffects(ctx, l.Pool); err != nil {
				return err
			}
			return l.Check(ctx, l.Pool, "check_counts", total)
		},
	})
}

// prepare makes the queues, and writes down what will be published.
func prepare(ctx context.Context, l *lab.Lab, total int) error {
	e, err := endpoint(l.Bus)
	if err == nil {
		err = e.Install(ctx)
	}
	for _, topic := range []string{Counted{}.Kind(), receipts} {
		if err == nil {
			err = l.Bus.InstallQueue(ctx, topic, topic)
		}
	}
	if err != nil {
		return err
	}
	return l.Exec(ctx, sql.Get("told"), total)
}

func endpoint(b *bus.Bus) (*bus.Endpoint, error) {
	return bus.NewEndpoint(b, tallies, bus.EndpointOptions{}, bus.Saga(tally))
}

// kill kills a process of each role in turn, at even distances, and returns when everything is received. On a quick
// machine that can be before the last kill.
func kill(ctx context.Context, l *lab.Lab, total int) error {
	for n := range l.Kills {
		if err := reach(ctx, l, eachKill*(n+1)); err != nil {
			return err
		}
		// The publisher is ahead of the others, so it is the first, until there is nothing to publish.
		second := n / 4 % 2
		killed, err := killOne(ctx, l, []int{6, second, 2 + second, 4 + second}[n%4], n%6, total)
		switch {
		case err != nil:
			return err
		case !killed && n < l.Kills/2:
			return fmt.Errorf("everything was received after %d kills, want %d", n, l.Kills)
		case !killed:
			return nil
		}
	}
	return reach(ctx, l, total)
}

// killOne kills the process of a place while it has a transaction open. It takes the other place when the process has
// opened no transaction for some time. It kills no process when everything is received, because then no process opens
// one.
func killOne(ctx context.Context, l *lab.Lab, place, other, total int) (killed bool, err error) {
	const most = 100
	for tries := 0; ; tries++ {
		if tries == most {
			place = other
		}
		if received, err := received(ctx, l); err != nil || received >= total {
			return false, err
		}
		if p := l.Crew.At(place); p != nil {
			if done, err := l.Crew.KillOpen(ctx, p); done || err != nil {
				return done, err
			}
		}
		// let it come somewhere else
		if err := run.Sleep(ctx, l.Between(time.Millisecond, 7*time.Millisecond)); err != nil {
			return false, err
		}
	}
}

// reach waits until so many numbers are received.
func reach(ctx context.Context, l *lab.Lab, wanted int) error {
	const within = 2 * time.Minute
	return lab.Await(ctx, within, fmt.Sprintf("the receipt of %d messages", wanted), func() (bool, error) {
		received, err := received(ctx, l)
		return received >= wanted, err
	})
}

func received(ctx context.Context, l *lab.Lab) (n int, err error) {
	err = l.Row(ctx, sql.Get("progress"), nil, &n)
	return n, err
}
