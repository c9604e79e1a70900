package repair

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

//go:embed repair.sql
var statements string

// Errors that a caller can handle.
var (
	// ErrNotFound means that no instance of the key lives, or that the living one is not the expected one.
	ErrNotFound = errors.New("no instance of this key is alive")
	// ErrVersion means that the instance does not have the expected version.
	ErrVersion = errors.New("the instance has changed")
	// ErrRemembered means that the instance has completed, and that its row only remembers it.
	ErrRemembered = errors.New("the instance has completed, and is only remembered")
	// ErrState means that a state is not valid for the saga.
	ErrState = errors.New("the state is invalid")
	// ErrFaulty means that a column of the instance's row cannot be decoded.
	ErrFaulty = errors.New("parts of the row cannot be read")
)

// Options are the options of operate.Operator that concern states.
type Options struct {
	Redact   func(saga string, state []byte) []byte
	Unmasked bool
}

// Store changes instances of one schema. It is safe for concurrent use.
type Store struct {
	Options
	pool   *pg.Pool
	schema pg.Schema
	sql    pg.Statements
	routes *queue.Router

	sagas   *persistence.Store
	history *history.Store
	audit   *audit.Store
}

// New returns a store. It does no I/O.
func New(pool *pg.Pool, schema pg.Schema, routes *queue.Router, o Options) *Store {
	return &Store{Options: o, pool: pool, schema: schema, sql: pg.Load(statements, schema), routes: routes,
		sagas: persistence.New(schema), history: history.New(schema), audit: audit.New(schema)}
}

// Target is an instance, with the expectations of the caller.
type Target struct {
	Saga, Key  string
	ID         saga.ID // zero is any
	Version    int64   // 0 is any
	Reason     string
	Definition *saga.Definition // nil is unknown
}

// name returns the instance's name in errors.
func (t *Target) name() string { return fmt.Sprintf("saga %.80s/%.80q", t.Saga, t.Key) }

// change is one transaction on one instance.
type change struct {
	*Store
	tx     pgx.Tx
	row    persistence.Found // locked
	now    time.Time         // of the transaction
	role   string
	def    *saga.Definition // nil if unknown
	reason string
	woken  *queue.Queue // has a message that is due earlier than before
}

// locked calls do in a transaction that has locked the row of an instance.
func (s *Store) locked(ctx context.Context, on Target, do func(c *change) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		c := &change{Store: s, tx: tx, def: on.Definition, reason: on.Reason}
		if err := c.begin(ctx); err != nil {
			return err
		}
		if err := c.lock(ctx, on.Saga, on.Key); err != nil {
			return err
		}
		switch i := &c.row.Instance; {
		case !on.ID.IsZero() && i.ID != on.ID:
			return ErrNotFound
		case c.row.Faulty != nil:
			return fmt.Errorf("%w: %w", ErrFaulty, c.row.Faulty)
		case !i.RememberedUntil().IsZero():
			return fmt.Errorf("%w until %s", ErrRemembered, i.RememberedUntil().UTC().Format("2006-01-02 15:04:05Z"))
		case on.Version != 0 && i.Version != on.Version:
			return fmt.Errorf("%w: it has version %d, not %d; look at it again", ErrVersion, i.Version, on.Version)
		}
		return do(c)
	})
	return pgerr.Explain(err)
}

func (c *change) begin(ctx context.Context) error {
	pg.EnsureArrays(c.tx.Conn().TypeMap())
	return c.tx.QueryRow(ctx, c.sql.Get("begin")).Scan(&c.now, &c.role, nil, nil, nil)
}

// lock locks the row of an instance, and waits for a transaction that has locked it.
func (c *change) lock(ctx context.Context, name, key string) error {
	for {
		found, err := c.sagas.Load(ctx, c.tx, []persistence.Ref{{Saga: name, Key: key, Lock: true}})
		if err != nil {
			return err
		}
		switch c.row = found[0]; c.row.Status {
		case persistence.Loaded:
			return nil
		case persistence.Absent:
			return ErrNotFound
		}
		if err := c.sagas.Wait(ctx, c.tx, c.row.Instance.ID); err != nil {
			return err
		}
	}
}

// save writes the next version of the instance, or deletes it. The row is locked, so a lost save is a fault of Edda.
func (c *change) save(ctx context.Context, op persistence.Op, page saga.ID) error {
	saved, err := c.sagas.Save(ctx, c.tx, []persistence.Write{{Op: op, Instance: c.row.Instance, Row: c.row.Row,
		Page: page}})
	if err == nil && !saved[0] {
		err = fmt.Errorf("%w, although its row was locked", ErrVersion)
	}
	return err
}

// name returns the instance's name in the audit.
func (c *change) name() string { return c.row.Instance.Saga + "/" + c.row.Instance.Key }

// note adds an audit entry.
func (c *change) note(ctx context.Context, verb string, before, after any) error {
	return c.audit.Add(ctx, c.tx, audit.Change{Verb: verb, Target: c.name(), Reason: c.reason, Before: before,
		After: after})
}

// by returns the actor, or the role if the context has no actor.
func (c *change) by(ctx context.Context) string {
	if name := audit.ActorOf(ctx).Name; name != "" {
		return name
	}
	return c.role
}

// record writes the page of the history that describes the change, with the state after it, and returns its id. state
// is nil if the history keeps no states.
func (c *change) record(ctx context.Context, kind history.ChangeKind, state []byte) (saga.ID, error) {
	i := &c.row.Instance
	keeper := history.Keeper{Store: c.history, Host: c.by(ctx)}
	page := keeper.NewPage("", newID)
	// A page of a sample does not promise to have every state, so the next version is written in full.
	page.Begin(history.Options{Level: history.States, Sample: sampled}, c.now)
	page.AddChange(&history.Change{ID: i.ID, Saga: i.Saga, Key: i.Key, Version: i.Version + 1, Kind: kind,
		Previous: c.row.Row.Page, State: state})
	pipeline := &pgx.Batch{}
	page.Queue(pipeline)
	if err := c.tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return saga.ID{}, fmt.Errorf("write the history: %w", err)
	}
	return page.ID(), nil
}

const sampled = 0.5

func newID() saga.ID { return saga.ID(uuid.Must(uuid.NewV7())) }
