package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

// makers makes the worlds that have names. Only tests make the worlds that need a role of their own.
var makers = map[string]func(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error){
	"shop": func(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
		shop, err := Seed(ctx, pool, schema)
		if err != nil {
			return nil, err
		}
		return shop.Stage, nil
	},
	"empty": func(_ context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
		return newStage(pool, schema, history.Options{})
	},
	"living": func(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
		return Living(ctx, pool, schema, 1_000_000)
	},
	"dead": func(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
		return Dead(ctx, pool, schema, 100_000, 300)
	},
	"hostile": Hostile, "newer": Newer, "forgetful": Forgetful, "large": Large, "crowd": Crowd, "paused": Paused,
	"partitioned": Partitioned, "relayed": Relayed, "trouble": Trouble,
}

// Names returns the names of the worlds, separated by commas.
func Names() string { return strings.Join(slices.Sorted(maps.Keys(makers)), ", ") }

// Check returns an error unless there is a world of that name.
func Check(name string) error {
	if makers[name] == nil {
		return fmt.Errorf("there is no world %q, only %s", name, Names())
	}
	return nil
}

// Open makes the world of that name, in a schema that has been migrated.
func Open(ctx context.Context, pool *pgxpool.Pool, schema, name string) (*Stage, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	return makers[name](ctx, pool, schema)
}
