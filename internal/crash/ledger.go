package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed ledger.sql
var ledgerSQL string

//go:embed checks.sql
var checksSQL string

const schemaName = "edda"

// statements are those of the ledger and of the checks. The server is ours, so the schema has its usual name.
var statements = mustLoad(ledgerSQL + "\n" + checksSQL)

func mustLoad(text string) pg.Statements {
	schema, err := pg.ParseSchema(schemaName)
	if err != nil {
		panic(err)
	}
	s, err := pg.Load(text, schema)
	if err != nil {
		panic(err)
	}
	return s
}

// fate is where a message must end.
type fate string

const (
	handled       fate = "handled"
	dead          fate = "dead"
	discarded     fate = "discarded"
	handledOrDead fate = "handled or dead" // there may be no instance for it
	answered      fate = "answer"          // handled, or discarded because the instance that asked has completed
	timer         fate = "timer"           // handled once, or cancelled
)

// ref is one message on its way to one endpoint, as the ledger has it.
type ref struct {
	ID       saga.ID
	Endpoint string
	Plan     string
	Fate     fate
	Given    bool    // the sender chose the id
	Instance saga.ID // with answered: who asked
}

// queueSent writes down what was sent, in the transaction that sends it.
func queueSent(b *pgx.Batch, by string, refs ...ref) {
	for _, r := range refs {
		b.Queue(statements.Get("crash_sent"), r.ID.String(), r.Endpoint, r.Plan, string(r.Fate), r.Given,
			nullable(r.Instance), by)
	}
}

func nullable(id saga.ID) *string {
	if id.IsZero() {
		return nil
	}
	text := id.String()
	return &text
}

func texts(ids []saga.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}

// createLedger makes the tables of the checker, and the trigger that watches the saga table.
func createLedger(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, statements.Get("crash_create"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("create the ledger: %w", err)
	}
	return nil
}

// number runs a statement that returns one.
func number(ctx context.Context, pool *pgxpool.Pool, name string, args ...any) (n int64, err error) {
	if err = pool.QueryRow(ctx, statements.Get(name), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
