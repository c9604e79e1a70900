package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tablesSQL string

// tables is the preparing and counting half of the hand-written peers, which differ only in their work.
type tables struct{}

// Prepare creates the tables and fills them with COPY.
func (tables) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := createInstances(ctx, db, c); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, statements(tablesSQL, c.Schema())["queues"]); err != nil {
		return fmt.Errorf("create queues: %w", err)
	}
	if c.Workload == Latency || c.Kept() {
		return nil
	}
	rows := []string{"due", "id", "kind", "header", "body"}
	return fill(ctx, db, pgx.Identifier{c.Schema(), "queue"}, rows, messageRows(c))
}

// Queue is the table of the incoming messages, for the workloads that fill it in the server.
func (tables) Queue() string { return "queue" }

// createInstances makes the schema of the case, with the instances in it.
func createInstances(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if _, err := db.Exec(ctx, statements(tablesSQL, c.Schema())["create"]); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if c.Workload == Latency {
		return nil
	}
	rows := []string{"iid", "saga", "key", "version", "state"}
	return fill(ctx, db, pgx.Identifier{c.Schema(), "saga"}, rows, instanceRows(c))
}

// Effects counts the effects of the run.
func (tables) Effects(ctx context.Context, db *pgxpool.Pool, c Case) (Effects, error) {
	return readEffects(ctx, db, statements(tablesSQL, c.Schema())["effects"])
}

func readEffects(ctx context.Context, db *pgxpool.Pool, sql string) (e Effects, err error) {
	err = db.QueryRow(ctx, sql).Scan(&e.Left, &e.Sent, &e.SentTotal, &e.Steps, &e.Total)
	return e, err
}

// fill copies rows into a table.
func fill(ctx context.Context, db *pgxpool.Pool, table pgx.Identifier, columns []string,
	rows iter.Seq2[[]any, error]) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	source := pgx.CopyFromFunc(func() ([]any, error) {
		row, err, _ := next() // nil, nil at the end, which ends the COPY
		return row, err
	})
	if _, err := db.CopyFrom(ctx, table, columns, source); err != nil {
		return fmt.Errorf("fill %s: %w", table.Sanitize(), err)
	}
	return nil
}

func instanceRows(c Case) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range c.Instances() {
			state, err := json.Marshal(newOrder(i))
			if !yield([]any{newID(), sagaName, orderKey(i), int64(1), state}, err) {
				return
			}
		}
	}
}

// messageRows gives every message a due time of its own, all of them in the past, as if they had been sent one by one.
func messageRows(c Case) iter.Seq2[[]any, error] {
	due := time.Now().Add(-time.Minute)
	return func(yield func([]any, error) bool) {
		for m := range c.Charges() {
			body, err := json.Marshal(m)
			due = due.Add(time.Microsecond)
			if !yield([]any{due, newID(), m.Kind(), c.header(m.Seq), body}, err) {
				return
			}
		}
	}
}

// newHeader returns the header of a message: about 100 bytes.
func newHeader() []byte {
	return fmt.Appendf(nil, `{"correlation":"%s","conversation":"%s"}`, newID(), newID())
}

// newID is a version 7 UUID, whose order is the order of its making.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func init() { uuid.EnableRandPool() } // ids by the hundred thousand need not one system call each

// statements reads the `-- name:` blocks of a .sql file and puts the schema in place of :schema.
func statements(text, schema string) map[string]string {
	blocks := map[string]string{}
	for block := range strings.SplitSeq("\n"+text, "\n-- name: ") {
		name, body, found := strings.Cut(block, "\n")
		if found && strings.TrimSpace(name) != "" {
			blocks[strings.TrimSpace(name)] = strings.ReplaceAll(body, ":schema", schema)
		}
	}
	return blocks
}

// locked is how a peer reaches the instance of one message in its own transaction, and how it sends.
type locked struct {
	load func(key string, iid *uuid.UUID, state *[]byte) error // with the row locked
	save func(iid uuid.UUID, state []byte) error
	send func(Charged) error
}

// step is the saga step of the peers that are libraries for one message at a time.
func (l locked) step(m Charge) error {
	var iid uuid.UUID
	var state []byte
	if err := l.load(m.Order, &iid, &state); err != nil {
		return fmt.Errorf("load %s: %w", m.Order, err)
	}
	var order Order
	if err := json.Unmarshal(state, &order); err != nil {
		return err
	}
	charged := order.Apply(m)
	state, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if err := l.save(iid, state); err != nil {
		return fmt.Errorf("save %s: %w", m.Order, err)
	}
	return l.send(charged)
}

// lockedIn reaches the instance through a transaction of pgx.
func lockedIn(ctx context.Context, tx pgx.Tx, sql map[string]string, send func(Charged) error) locked {
	return locked{
		load: func(key string, iid *uuid.UUID, state *[]byte) error {
			return tx.QueryRow(ctx, sql["load"], key).Scan(iid, state)
		},
		save: func(iid uuid.UUID, state []byte) error {
			_, err := tx.Exec(ctx, sql["save"], iid, state)
			return err
		},
		send: send,
	}
}
