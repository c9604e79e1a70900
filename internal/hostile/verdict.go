package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	edda "github.com/edda-go/edda/internal/run"
)

// verdict is what the run has shown.
type verdict struct {
	attacks, refused, handled, discarded, dead, vanished, left int

	good, lost, doubled int
	worst               string // the route that kept least of its quiet rate
	kept                float64
	gap                 time.Duration // the longest time in which a route had no effect, under attack
}

// least is how much of its quiet rate each route must keep; longestGap how long it may have no effect at all: the
// attempts of a few overruns, one after another.
const (
	least      = 0.5
	longestGap = 20 * time.Second
)

func (v verdict) line(s settings) string {
	return fmt.Sprintf("hostile: seconds=%.0f attacks=%d refused=%d handled=%d discarded=%d dead=%d left=%d "+
		"vanished=%d good=%d lost=%d doubled=%d kept=%.2f (%s) gap=%.1fs died=0",
		s.length.Seconds(), v.attacks, v.refused, v.handled, v.discarded, v.dead, v.left, v.vanished, v.good, v.lost,
		v.doubled, v.kept, v.worst, v.gap.Seconds())
}

func (v verdict) broken() bool {
	return v.left+v.vanished+v.lost+v.doubled > 0 || v.kept < least || v.gap > longestGap || v.attacks == 0 ||
		v.dead == 0
}

func (r *race) judge(ctx context.Context) (v verdict, err error) {
	v.refused, v.kept = r.refused, 1
	if v.left, err = r.noteWaiting(ctx); err != nil {
		return v, err
	}
	if err := r.pool.QueryRow(ctx, statement("fates")).Scan(&v.attacks, &v.handled, &v.discarded, &v.dead,
		&v.vanished); err != nil {
		return v, fmt.Errorf("count the fates: %w", err)
	}
	if err := r.tellKinds(ctx, "left", "still waits"); err != nil {
		return v, err
	}
	if err := r.tellKinds(ctx, "vanished", "no fate"); err != nil {
		return v, err
	}
	for _, route := range routes {
		if err := r.judgeRoute(ctx, route, &v); err != nil {
			return v, fmt.Errorf("judge route %s: %w", route, err)
		}
	}
	return v, r.tellLetters(ctx)
}

func (r *race) judgeRoute(ctx context.Context, route string, v *verdict) error {
	var effects, extra, quiet, under int
	var gap float64
	if err := r.pool.QueryRow(ctx, statement("effects"), route).Scan(&effects, &extra); err != nil {
		return err
	}
	if err := r.pool.QueryRow(ctx, statement("rate"), route, r.quiet.begin, r.quiet.end).Scan(&quiet); err != nil {
		return err
	}
	if err := r.pool.QueryRow(ctx, statement("rate"), route, r.under.begin, r.under.end).Scan(&under); err != nil {
		return err
	}
	if err := r.pool.QueryRow(ctx, statement("gap"), route, r.under.begin, r.under.end).Scan(&gap); err != nil {
		return err
	}
	v.good += r.sent[route]
	v.lost += r.sent[route] - effects
	if route != relayed { // which may give a message twice
		v.doubled += extra
	}
	quietRate := float64(quiet) / r.quiet.end.Sub(r.quiet.begin).Seconds()
	if kept := float64(under) / r.under.end.Sub(r.under.begin).Seconds() / max(quietRate, 0.001); kept < v.kept ||
		v.worst == "" {
		v.kept, v.worst = kept, route
	}
	v.gap = max(v.gap, time.Duration(gap*float64(time.Second)))
	fmt.Printf("hostile: route %s: sent=%d effects=%d repeated=%d quiet=%.0f/s attacked=%.0f/s gap=%.1fs\n", route,
		r.sent[route], effects, extra,
		quietRate, float64(under)/r.under.end.Sub(r.under.begin).Seconds(), gap)
	return nil
}

// tellLetters prints the dead letters of messages that are not hostile.
func (r *race) tellLetters(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, statement("letters"))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var endpoint, kind, reason, fault string
		var all, good int
		if err := rows.Scan(&endpoint, &kind, &reason, &fault, &all, &good); err != nil {
			return err
		}
		fmt.Printf("hostile: dead and not hostile: %d of %s %q: %s: %.160q\n", good, endpoint, kind, reason, fault)
	}
	return rows.Err()
}

// tellKinds prints hostile messages with the same end, by the way in which they came.
func (r *race) tellKinds(ctx context.Context, query, end string) error {
	rows, err := r.pool.Query(ctx, statement(query))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var what string
		var n int
		if err := rows.Scan(&what, &n); err != nil {
			return err
		}
		fmt.Printf("hostile: %s: %d of %s\n", end, n, what)
	}
	return rows.Err()
}

// awaitEmpty waits until nothing waits in any queue. Meanwhile some good messages follow: a relay gives a message up
// only when others go through behind it, and a queue in which nothing follows says nothing of that.
func (r *race) awaitEmpty(ctx context.Context) error {
	for deadline := time.Now().Add(drainWithin); time.Now().Before(deadline); {
		left, err := r.waiting(ctx)
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		if err := r.sendGood(ctx, len(routes)); err != nil {
			return err
		}
		if err := edda.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil // judge counts what is left
}

// waiting counts the messages in all queues.
func (r *race) waiting(ctx context.Context) (left int, err error) {
	queues, err := r.tables(ctx)
	if err != nil {
		return 0, err
	}
	for _, table := range queues {
		var n int
		if err := r.pool.QueryRow(ctx, strings.ReplaceAll(statement("waiting"), ":queue", table)).Scan(&n); err != nil {
			return 0, fmt.Errorf("count what waits: %w", err)
		}
		left += n
	}
	return left, nil
}

// noteWaiting writes down which hostile messages still wait, and counts them. The workers have ended.
func (r *race) noteWaiting(ctx context.Context) (left int, err error) {
	queues, err := r.tables(ctx)
	if err != nil {
		return 0, err
	}
	for _, table := range queues {
		noted, err := r.pool.Exec(ctx, strings.ReplaceAll(statement("note_waiting"), ":queue", table))
		if err != nil {
			return 0, fmt.Errorf("note what waits: %w", err)
		}
		left += int(noted.RowsAffected())
	}
	return left, nil
}

// tables are the queues' tables by endpoint.
func (r *race) tables(ctx context.Context) (map[string]string, error) {
	rows, err := r.pool.Query(ctx, statement("queues"))
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	defer rows.Close()
	tables := map[string]string{}
	for rows.Next() {
		var endpoint string
		var id int
		if err := rows.Scan(&endpoint, &id); err != nil {
			return nil, err
		}
		tables[endpoint] = fmt.Sprintf("edda.queue_%d", id)
	}
	return tables, rows.Err()
}
