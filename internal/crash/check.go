package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// violation is one thing that must not be.
type violation struct{ rule, id, what string }

// checks are run after every phase, when all queues are empty.
var checks = []string{
	"check_places", "check_counters", "check_instances", "check_versions", "check_keys",
	"check_timers", "check_ids", "check_tally", "check_queues",
}

// querier is met by a pool and by a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// check runs all of them.
func check(ctx context.Context, pool querier) ([]violation, error) {
	var found []violation
	for _, name := range checks {
		rows, err := pool.Query(ctx, statements.Get(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		these, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v violation, err error) {
			return v, row.Scan(&v.rule, &v.id, &v.what)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, these...)
	}
	return found, nil
}

// tell prints the first violations, each with all that is known of it.
func tell(ctx context.Context, out io.Writer, pool querier, found []violation) error {
	const most = 10
	for n, v := range found {
		if n == most {
			_, _ = fmt.Fprintf(out, "  … and %d more\n", len(found)-most)
			break
		}
		_, _ = fmt.Fprintf(out, "  %s: %s\n", v.rule, v.what)
		rows, err := pool.Query(ctx, statements.Get("story"), v.id)
		if err != nil {
			return fmt.Errorf("tell the story of %s: %w", v.id, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("tell the story of %s: %w", v.id, err)
		}
		for _, line := range lines {
			_, _ = fmt.Fprintf(out, "    %s\n", line)
		}
	}
	return nil
}

// tally counts the violations of each rule; lost and doubled are always there.
func tally(found []violation) string {
	count := map[string]int{}
	for _, v := range found {
		count[v.rule]++
	}
	text := fmt.Sprintf("lost=%d doubled=%d", count["lost"], count["doubled"])
	delete(count, "lost")
	delete(count, "doubled")
	for _, rule := range slices.Sorted(maps.Keys(count)) {
		text += fmt.Sprintf(" %s=%d", strings.ReplaceAll(rule, " ", "_"), count[rule])
	}
	return text
}
