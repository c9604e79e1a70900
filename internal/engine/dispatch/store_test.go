package dispatch_test

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

func store(ctx context.Context, pool *pgxpool.Pool, schema pg.Schema, do string, names ...string) error {
	s, err := scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()})
	if err != nil {
		return err
	}
	var all []scheduler.Manifest
	for _, name := range names {
		all = append(
			all,
			scheduler.Manifest{Name: name, When: scheduler.Every(time.Hour), Message: saga.Raw{Name: "ping"}},
		)
	}
	switch do {
	case "put":
		return s.Put(ctx, all[0])
	case "trigger":
		_, err = s.Trigger(ctx, names[0], nil, scheduler.TriggerOptions{})
		return err
	}
	_, err = s.Sync(ctx, "shop", nil, all)
	return err
}
