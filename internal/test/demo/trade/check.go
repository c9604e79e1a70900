package trade

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed check.sql
var checkSQL string

// errWrong is the answer of the check: the exit code is 1.
var errWrong = errors.New("orders are not as they should be")

// verdict is one order, by the shop's own tables.
type verdict struct {
	Order   int
	Outcome string
	Effects string // placed, charges, refunds, reservations, releases, shipments, outcomes
	Fine    bool
}

const listed = 10 // wrong orders that are printed

// check counts the effects of every order and prints the result.
func check(ctx context.Context, pool *pgxpool.Pool, orders int, out io.Writer) error {
	rows, err := pool.Query(ctx, checkSQL)
	if err != nil {
		return fmt.Errorf("check the orders: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[verdict])
	if err != nil {
		return fmt.Errorf("check the orders: %w", err)
	}
	outcomes, wrong := map[string]int{}, 0
	for _, v := range all {
		outcomes[v.Outcome]++
		if v.Fine {
			continue
		}
		if wrong++; wrong <= listed {
			_, _ = fmt.Fprintf(out, "wrong: order %d is %s with (placed, charges, refunds, reservations, releases, "+
				"shipments, ends) = %s\n", v.Order, v.Outcome, v.Effects)
		}
	}
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		_, _ = fmt.Fprintf(out, "%7d %s\n", outcomes[outcome], outcome)
	}
	_, _ = fmt.Fprintf(out, "orders=%d wrong=%d\n", len(all), wrong)
	if wrong > 0 || len(all) != orders {
		return fmt.Errorf("%w: %d of %d are wrong, and %d were to be placed", errWrong, wrong, len(all), orders)
	}
	return nil
}
