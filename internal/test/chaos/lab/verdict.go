package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Violation is one thing that must not be.
type Violation struct{ Rule, ID, What string }

// fact is a figure of the line that Conclude prints.
type fact struct {
	name  string
	value any
}

// notes are what was seen in a run.
type notes struct {
	mu    sync.Mutex // guards what follows, and the lines of Say
	facts []fact
	found []Violation
	blows map[string]int // by kind
}

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Fact puts a figure into the line that Conclude prints.
func (l *Lab) Fact(name string, value any) {
	if d, ok := value.(time.Duration); ok {
		value = d.Round(100 * time.Millisecond)
	}
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	l.notes.facts = append(l.notes.facts, fact{name, value})
}

// Violate notes a violation.
func (l *Lab) Violate(rule, id, format string, args ...any) {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	l.notes.found = append(l.notes.found, Violation{rule, id, fmt.Sprintf(format, args...)})
}

// Expect notes a violation unless ok.
func (l *Lab) Expect(ok bool, rule, format string, args ...any) {
	if !ok {
		l.Violate(rule, "", format, args...)
	}
}

// Check runs a statement of the scenario whose rows are violations: the rule, what it is about, and a sentence.
func (l *Lab) Check(ctx context.Context, q Querier, name string, args ...any) error {
	return l.check(ctx, q, name, l.Scenario.SQL.Get(name), args...)
}

// CheckAll is Check for several statements.
func (l *Lab) CheckAll(ctx context.Context, q Querier, names ...string) error {
	for _, name := range names {
		if err := l.Check(ctx, q, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) check(ctx context.Context, q Querier, name, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	these, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Violation])
	l.notes.mu.Lock()
	l.notes.found = append(l.notes.found, these...)
	l.notes.mu.Unlock()
	return err
}

// CheckEffects finds messages in the ledger without an effect, with several, and effects of no message. Keys that may
// repeat have at least one.
func (l *Lab) CheckEffects(ctx context.Context, q Querier, mayRepeat ...string) error {
	return l.check(ctx, q, "check_effects", statements.Get("check_effects"), append([]string{}, mayRepeat...))
}

// Found returns the violations so far.
func (l *Lab) Found() []Violation {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	return slices.Clone(l.notes.found)
}

// Forget begins a new judgement.
func (l *Lab) Forget() {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	l.notes.facts, l.notes.found, l.notes.blows = nil, nil, map[string]int{}
}

// mostPrinted is how many violations are printed.
const mostPrinted = 10

// Conclude prints the figures, the blows, and how often each rule was violated; then the first violations, each with
// what the ledger has of it. It returns ErrBroken when there are any.
func (l *Lab) Conclude(ctx context.Context, title string) error {
	line := l.Scenario.Name
	if title != "" {
		line += " " + title
	}
	line += ":"
	count := map[string]int{}
	for _, v := range l.Found() {
		count[v.Rule]++
	}
	l.notes.mu.Lock()
	for _, f := range l.notes.facts {
		line += fmt.Sprintf(" %s=%v", f.name, f.value)
	}
	for _, kind := range slices.Sorted(maps.Keys(l.notes.blows)) {
		line += fmt.Sprintf(" %ss=%d", word(kind), l.notes.blows[kind])
	}
	l.notes.mu.Unlock()
	for _, rule := range l.Scenario.Rules {
		line += fmt.Sprintf(" %s=%d", word(rule), count[rule])
		delete(count, rule)
	}
	for _, rule := range slices.Sorted(maps.Keys(count)) {
		line += fmt.Sprintf(" %s=%d", word(rule), count[rule])
	}
	_, _ = fmt.Fprintln(l.Out, line)
	found := l.Found()
	if len(found) == 0 {
		return nil
	}
	for n, v := range found {
		if n == mostPrinted {
			_, _ = fmt.Fprintf(l.Out, "  … and %d more\n", len(found)-mostPrinted)
			break
		}
		_, _ = fmt.Fprintf(l.Out, "  %s: %s\n", v.Rule, v.What)
		if err := l.story(ctx, v.ID); err != nil {
			return err
		}
	}
	return ErrBroken
}

func word(s string) string { return strings.ReplaceAll(s, " ", "_") }

// story prints what the ledger knows of one thing.
func (l *Lab) story(ctx context.Context, id string) error {
	sql := l.Scenario.SQL["story"]
	if sql == "" || id == "" {
		return nil
	}
	rows, err := l.Pool.Query(ctx, sql, id)
	if err != nil {
		return fmt.Errorf("read the story of %s: %w", id, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		_, _ = fmt.Fprintf(l.Out, "    %s\n", line)
	}
	return err
}
