package eddadev_test

import (
	"context"
	"fmt"
	"os"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// check ends the example if its argument is not nil.
var check = pgtest.Must

// useEmptyDatabase names a database of the example, in place of the private Postgres that Connect would start, and
// switches the pages off.
func useEmptyDatabase() (end func()) {
	before, was := os.LookupEnv("DATABASE_URL")
	_, pool, drop := pgtest.EmptyExample()
	check(os.Setenv("DATABASE_URL", pool.Config().ConnString()))
	check(os.Setenv(eddadev.PagesVariable, "off"))
	return func() {
		drop()
		check(os.Unsetenv(eddadev.PagesVariable))
		check(os.Unsetenv("DATABASE_URL"))
		if was {
			check(os.Setenv("DATABASE_URL", before))
		}
	}
}

// Run makes the tables and the queues, serves pages, and runs the endpoints.
func ExampleRun() {
	defer useEmptyDatabase()()
	ctx, stop := context.WithCancel(context.Background()) // as signal.NotifyContext does
	defer stop()
	pool, err := eddadev.Connect(ctx, "doors") // DATABASE_URL, or a private Postgres
	check(err)
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	answer := func(*bus.Context, pgx.Tx, knock) error {
		fmt.Println("somebody knocks")
		stop()
		return nil
	}
	doors, err := bus.NewEndpoint(b, "doors", bus.EndpointOptions{}, bus.HandleTx(answer))
	check(err)
	guest := edda.RunnerFunc(func(ctx context.Context) error {
		_, err := b.Send(ctx, knock{})
		return err
	})
	fmt.Println(eddadev.Run(ctx, b, doors, guest))
	// Output:
	// somebody knocks
	// <nil>
}
