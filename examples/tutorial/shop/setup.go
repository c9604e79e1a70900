package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5/pgxpool"
)

var errNoRuntime = errors.New("SHOP_RUNTIME is not set: it names the role that runs the shop")

// setup makes the tables and the queues, and gives the role of the runtime its rights. It may be done again at any
// time, also while the shop runs.
func setup(ctx context.Context, pool *pgxpool.Pool) error {
	roles := migrations.Roles{Runtime: os.Getenv("SHOP_RUNTIME"), Reader: os.Getenv("SHOP_READER")}
	if roles.Runtime == "" {
		return errNoRuntime
	}
	if err := install(ctx, pool, roles); err != nil {
		return fmt.Errorf("set up as %s, which has to own the schema: %w", pool.Config().ConnConfig.User, err)
	}
	return nil
}

// install does what only the owner of the schema may do.
func install(ctx context.Context, pool *pgxpool.Pool, roles migrations.Roles) error {
	if err := migrations.Up(ctx, pool, migrations.Options{}); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	runners, err := shop(b)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	script, err := migrations.Grants("", roles)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, script)
	return err
}
