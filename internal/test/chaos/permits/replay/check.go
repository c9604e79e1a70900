package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// checks each return differences, in the order in which they are printed.
var checks = []struct {
	name string
	args []any
}{
	{"check_lost", nil},
	{"check_doubled", nil},
	{"check_invented", nil},
	{"check_instances", []any{sagaName}},
	{"check_timers", nil},
	{"check_rest", nil},
}

// difference is one thing that is not as the log says.
type difference struct{ Rule, Case, What string }

// verdict is the outcome of a run, from the file and the database alone.
type verdict struct {
	cases, events     int // of the file
	instances, timers int // of the database, as all below
	duplicates, lost  int
	differences       []difference
}

// judge compares the database with the log. It reads one snapshot, so that what a late worker might still write cannot
// mix with what is checked.
func (d *database) judge(ctx context.Context, l *eventLog, p pace) (v verdict, err error) {
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		defer tx.Rollback(context.WithoutCancel(ctx))
		v, err = d.judgeIn(ctx, tx, l, p)
	}
	if err != nil {
		return v, fmt.Errorf("check: %w", err)
	}
	return v, nil
}

func (d *database) judgeIn(ctx context.Context, tx pgx.Tx, l *eventLog, p pace) (verdict, error) {
	v := verdict{cases: len(l.Cases), events: len(l.Events)}
	if err := d.loadTruth(ctx, tx, l, p); err != nil {
		return v, fmt.Errorf("read the log into the session: %w", err)
	}
	err := tx.QueryRow(ctx, d.sql["summary"], sagaName).Scan(&v.instances, &v.timers, &v.duplicates, &v.lost)
	if err != nil {
		return v, fmt.Errorf("count: %w", err)
	}
	for _, c := range checks {
		rows, err := tx.Query(ctx, d.sql[c.name], c.args...)
		if err != nil {
			return v, fmt.Errorf("%s: %w", c.name, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[difference])
		if err != nil {
			return v, fmt.Errorf("%s: %w", c.name, err)
		}
		v.differences = append(v.differences, found...)
	}
	return v, nil
}

// loadTruth copies what the file says into tables of this session.
func (d *database) loadTruth(ctx context.Context, tx pgx.Tx, l *eventLog, p pace) error {
	if _, err := tx.Exec(ctx, d.sql["create_truth"], pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	events := pgx.CopyFromSlice(len(l.Events), func(i int) ([]any, error) {
		e := l.Events[i]
		return []any{e.Case, e.Line, e.Activity, e.At}, nil
	})
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"truth_event"}, []string{"case_id", "line", "activity", "at"},
		events); err != nil {
		return err
	}
	cases := pgx.CopyFromSlice(len(l.Cases), func(i int) ([]any, error) {
		c := l.Cases[i]
		return []any{c.Case, c.Events, c.Last.Line, c.Last.Activity, c.Last.At, p.at(c.Deadline)}, nil
	})
	columns := []string{"case_id", "events", "last_line", "last_activity", "last_at", "due"}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"truth_case"}, columns, cases); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, d.sql["analyze_truth"])
	return err
}

const mostDifferences = 10

// report judges the run, and prints the line and the first differences.
func report(ctx context.Context, db *database, l *eventLog, out io.Writer) error {
	p, _, err := db.readRun(ctx, l)
	if err != nil {
		return err
	}
	v, err := db.judge(ctx, l, p)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "cases=%d events=%d instances=%d timers=%d duplicates=%d lost=%d\n", v.cases, v.events,
		v.instances, v.timers, v.duplicates, v.lost)
	for _, d := range v.differences[:min(len(v.differences), mostDifferences)] {
		_, _ = fmt.Fprintf(out, "  %s %s: %s\n", d.Rule, d.Case, d.What)
	}
	if n := len(v.differences); n > 0 {
		return fmt.Errorf("the outcome differs from the log in %d places", n)
	}
	return nil
}
