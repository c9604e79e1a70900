package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// deadlocks adds up what Postgres counts. An immediate restart forgets the count, so it is read before each.
type deadlocks struct {
	base, before int64
}

func (d *deadlocks) begin(ctx context.Context, pool *pgxpool.Pool) (err error) {
	d.before = 0
	d.base, err = number(ctx, pool, "crash_deadlocks")
	return err
}

// restarting is called before a restart, restarted after it.
func (d *deadlocks) restarting(ctx context.Context, pool *pgxpool.Pool) (err error) {
	d.before, err = d.sum(ctx, pool)
	return err
}

func (d *deadlocks) restarted(ctx context.Context, pool *pgxpool.Pool) (err error) {
	d.base, err = number(ctx, pool, "crash_deadlocks")
	return err
}

func (d *deadlocks) sum(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	n, err := number(ctx, pool, "crash_deadlocks")
	return d.before + n - d.base, err
}
