package exchange

import (
	"context"
	_ "embed"
	"errors"
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

// eachKill is the number of messages that are received between two kills.
const eachKill = 500

func exchange(ctx context.Context, s lab.Settings) error {
	var total int // of the messages
	return s.Try(ctx, lab.Trial{
		Server:  pgdev.Options{Durable: true},
		Prepare: prepare,
		Places:  len(crew),
		Task:    func(place int) any { return task{Role: crew[place]} },
		Break: func(ctx context.Context, l *lab.Lab) (err error) {
			total, err = kill(ctx, l)
			return err
		},
		Judge: func(ctx context.Context, l *lab.Lab) error {
			l.Fact("messages", total)
			if err := l.CheckEffects(ctx, l.Pool); err != nil {
				return err
			}
			return l.Check(ctx, l.Pool, "check_counts", total)
		},
	})
}

// prepare makes the queues.
func prepare(ctx context.Context, l *lab.Lab) error {
	e, err := endpoint(l.Bus)
	if err == nil {
		err = e.Install(ctx)
	}
	for _, topic := range []string{Counted{}.Kind(), receipts} {
		if err == nil {
			err = l.Bus.InstallQueue(ctx, topic, topic)
		}
	}
	return err
}

func endpoint(b *bus.Bus) (*bus.Endpoint, error) {
	return bus.NewEndpoint(b, tallies, bus.EndpointOptions{}, bus.Saga(tally))
}

// kill kills a process of each role in turn, at even distances. The publisher continues until the last kill, so that
// each role has work. Then kill stops it, waits until everything is received, and returns the number of messages.
func kill(ctx context.Context, l *lab.Lab) (total int, err error) {
	for n := range l.Kills {
		if err := reach(ctx, l, eachKill*(n+1)); err != nil {
			return 0, err
		}
		second := n / 4 % 2
		if err := killOne(ctx, l, []int{6, second, 2 + second, 4 + second}[n%4]); err != nil {
			return 0, err
		}
	}
	if err := l.Row(ctx, sql.Get("stop"), nil, &total); err != nil {
		return 0, err
	}
	return total, errors.Join(l.Exec(ctx, sql.Get("told"), total), reach(ctx, l, total))
}

// killOne kills the process of a place while it has a transaction open.
func killOne(ctx context.Context, l *lab.Lab, place int) error {
	return lab.Await(ctx, 2*time.Minute, fmt.Sprintf("an open transaction of place %d", place), func() (bool, error) {
		p := l.Crew.At(place)
		if p == nil {
			return false, nil
		}
		done, err := l.Crew.KillOpen(ctx, p)
		if done || err != nil {
			return done, err
		}
		return false, run.Sleep(ctx, l.Between(time.Millisecond, 7*time.Millisecond)) // let it come somewhere else
	})
}

// reach waits until a number of messages is received.
func reach(ctx context.Context, l *lab.Lab, wanted int) error {
	return lab.Await(ctx, 2*time.Minute, fmt.Sprintf("the receipt of %d messages", wanted), func() (bool, error) {
		received := 0
		err := l.Row(ctx, sql.Get("received"), nil, &received)
		return received >= wanted, err
	})
}
