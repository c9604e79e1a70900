package messages

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed messages.sql
var statements string

// Errors that a caller can handle.
var (
	// ErrNoRoute means that no endpoint consumes the kind, or that the named endpoint does not exist.
	ErrNoRoute = queue.ErrNoRoute
	// ErrAmbiguous means that several endpoints consume the kind.
	ErrAmbiguous = queue.ErrAmbiguous
	// ErrNotFound means that no instance of the key lives, or that the living one is not Message.Instance.
	ErrNotFound = errors.New("no instance of this key is alive")
	// ErrConflict means that the ID was used for a different message.
	ErrConflict = dedup.ErrConflict
)

// Operator sends messages into one schema. It is safe for concurrent use.
type Operator struct {
	pool   *pg.Pool
	schema pg.Schema
	sql    pg.Statements
	sagas  *persistence.Store
	audit  *audit.Store
}

// New makes an Operator over pool; a schema of "" is "edda". It does no I/O, and checks the schema's name.
func New(pool *pgxpool.Pool, schema string) (*Operator, error) {
	if pool == nil {
		return nil, errors.New("new operator of messages: the pool is nil")
	}
	s, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("new operator of messages: %w", err)
	}
	return &Operator{pg.Committed(pool), s, pg.Load(statements, s), persistence.New(s), audit.Of(s)}, nil
}

// Message is a message to send.
type Message struct {
	Kind    string
	Body    []byte
	To      string            // the endpoint; "" is the endpoint that consumes the kind
	Headers map[string]string // names may not begin with edda-
	Delay   time.Duration     // until it is due
	ID      saga.ID           // zero is a new id; a message with an ID is written once in seven days
	Reason  string            // "" is the reason of the context, see audit.Because

	// Saga and Key name the living instance that the message is for; Saga is "" if it is not for an instance. A handler
	// of an answer receives it for this instance; other handlers receive it for this instance and not for the message's
	// key. An answer has no consumer of its kind, so name the saga's endpoint in To.
	Saga, Key string
	Instance  saga.ID // expected id; if the key has a different instance, ErrNotFound; zero is any
}

// Sent is the result of Send.
type Sent struct {
	ID        saga.ID
	Duplicate bool // the message was sent before, and nothing was written
}

// isFor reports whether the message may be sent to i.
func (m *Message) isFor(i saga.Instance) bool { return m.Instance.IsZero() || m.Instance == i.ID }

const ownHeaders = "edda-"

// Send sends a message.
func (o *Operator) Send(ctx context.Context, m Message) (sent Sent, err error) {
	header := map[string]string{}
	for name, value := range m.Headers {
		if strings.HasPrefix(strings.ToLower(name), ownHeaders) {
			return sent, fmt.Errorf("send %.80s: header %.80q may only be set by the bus", m.Kind, name)
		}
		header[name] = value
	}
	err = pgx.BeginTxFunc(ctx, o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if m.Saga != "" {
			i, ok, err := o.sagas.Show(ctx, tx, m.Saga, m.Key)
			if err == nil && (!ok || !i.Instance.RememberedUntil().IsZero() || !m.isFor(i.Instance)) {
				err = fmt.Errorf("%w: %.80s/%.80q", ErrNotFound, m.Saga, m.Key)
			}
			if err != nil {
				return err
			}
			header["edda-instance"] = i.Instance.ID.String()
		}
		if sent, err = o.write(ctx, tx, m, header); err != nil || sent.Duplicate {
			return err
		}
		return o.audit.Add(ctx, tx, audit.Change{Verb: "message.send", Target: sent.ID.String(), Reason: m.Reason,
			After: toldOf(m)})
	})
	if err != nil {
		return Sent{}, fmt.Errorf("send %.80s: %w", m.Kind, o.explain(ctx, m, err))
	}
	return sent, nil
}

func (o *Operator) write(ctx context.Context, tx pgx.Tx, m Message, header map[string]string) (sent Sent, err error) {
	text, err := json.Marshal(header)
	if err != nil {
		return sent, err
	}
	var id, to, after any
	if !m.ID.IsZero() {
		id = [16]byte(m.ID)
	}
	if m.To != "" {
		to = m.To
	}
	if m.Delay > 0 {
		after = pg.Micros(m.Delay)
	}
	err = tx.QueryRow(ctx, o.sql.Get("send"), pg.Planned, m.Kind, pg.NonNil(m.Body), string(text), to, id, after).
		Scan((*[16]byte)(&sent.ID), &sent.Duplicate)
	if err == nil && !sent.Duplicate {
		_, err = tx.Exec(ctx, o.sql.Get("wake"), pg.Planned, o.schema.Channel(), m.Kind, to)
	}
	return sent, err
}

// toldOf returns the data of a message for the audit.
func toldOf(m Message) map[string]any {
	told := map[string]any{"kind": pg.Storable(m.Kind, 200), "bytes": len(m.Body)}
	if m.To != "" {
		told["to"] = pg.Storable(m.To, 200)
	}
	if m.Saga != "" {
		told["instance"] = m.Saga + "/" + m.Key
	}
	if m.Delay > 0 {
		told["delay"] = m.Delay.String()
	}
	return told
}

// explain replaces the errors of the SQL function send by the errors of this package, and adds the remedy.
func (o *Operator) explain(ctx context.Context, m Message, err error) error {
	switch pgerr.Code(err) {
	case "ED002":
		hint := ""
		if known, err := queue.NewRouter(o.pool, o.schema, nil).Get(ctx, o.pool); err == nil && m.To == "" {
			hint = wire.Hint(m.Kind, known.Kinds)
		}
		return fmt.Errorf("%w%s: run the endpoint that handles it once, or install it, or name one", ErrNoRoute, hint)
	case "ED003":
		return fmt.Errorf("%w: name one: %w", ErrAmbiguous, err)
	case "ED004":
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return pgerr.Explain(err)
}
