package gather

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tables are the program's own.
//
//go:embed tables.sql
var Tables string

//go:embed check.sql
var checkSQL string

//go:embed left.sql
var leftSQL string

// ErrWrong is the answer of Check.
var ErrWrong = errors.New("not everything is as it should be")

// Enter handles Gathered: it writes down how a run has ended.
func Enter(ctx *bus.Context, tx pgx.Tx, m Gathered) error {
	_, err := tx.Exec(ctx, `INSERT INTO result (run, replies, sum, squares) VALUES ($1, $2, $3, $4)`,
		m.Run, m.Total.Count, m.Total.Sum, m.Total.Squares)
	return err
}

const listed = 10 // faults that are printed

// Check compares the end of every run with what it must be, and prints what is wrong.
func Check(ctx context.Context, pool *pgxpool.Pool, out io.Writer, requests int, runs ...string) error {
	rows, err := pool.Query(ctx, checkSQL, runs, requests)
	if err != nil {
		return fmt.Errorf("check the runs: %w", err)
	}
	var name, fault string
	checked, wrong := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&name, &fault}, func() error {
		checked++
		if fault == "" {
			return nil
		}
		if wrong++; wrong <= listed {
			_, _ = fmt.Fprintf(out, "wrong: %s: %s\n", name, fault)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check the runs: %w", err)
	}
	_, _ = fmt.Fprintf(out, "runs=%d wrong=%d: every reply was counted once, and every run came to the same sum, "+
		"unless something is wrong\n", checked, wrong)
	if wrong > 0 || checked != len(runs) {
		return fmt.Errorf("%w: %d of %d runs are wrong", ErrWrong, wrong, checked)
	}
	return nil
}

// CheckLeft returns an error, and prints what is wrong, if there are items in a schema of Edda's: each run of the
// append design takes its items away when it has added them up.
func CheckLeft(ctx context.Context, pool *pgxpool.Pool, schema string, out io.Writer) error {
	rows, err := pool.Query(ctx, strings.ReplaceAll(leftSQL, ":schema", pgx.Identifier{schema}.Sanitize()))
	if err != nil {
		return fmt.Errorf("check what items are left: %w", err)
	}
	var name string
	items, wrong := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&name, &items}, func() error {
		if wrong++; wrong <= listed {
			_, _ = fmt.Fprintf(out, "wrong: %s: %d items are left\n", name, items)
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("check what items are left: %w", err)
	case wrong > 0:
		return fmt.Errorf("%w: %d runs have left items", ErrWrong, wrong)
	}
	return nil
}
