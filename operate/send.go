package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Errors of Messages.Send, which has then sent nothing. It also returns ErrNoInstance.
var (
	// ErrNoRoute means that no endpoint consumes the kind, or that the named endpoint does not exist.
	ErrNoRoute = queue.ErrNoRoute
	// ErrAmbiguous means that several endpoints consume the kind.
	ErrAmbiguous = queue.ErrAmbiguous
	// ErrConflict means that the ID was used for a different message.
	ErrConflict = dedup.ErrConflict
)

// OutgoingMessage is a message to send.
type OutgoingMessage struct {
	Kind    string
	Body    []byte
	To      string            // the endpoint; "" is the endpoint that consumes the kind
	Headers map[string]string // names may not begin with edda-
	Delay   time.Duration     // until it is due
	ID      saga.ID           // zero is a new id; a message with an ID is written once in seven days
	Reason  string            // "" is the reason of the context, see WithReason

	// Saga and Key name the living instance that the message is for; Saga is "" if it is not for an instance. A handler
	// of an answer receives it for this instance; other handlers receive it for this instance and not for the message's
	// key. An answer has no consumer of its kind, so name the saga's endpoint in To.
	Saga, Key string
	Instance  saga.ID // expected id; if the key has a different instance, ErrNoInstance; zero is any
}

// isFor reports whether the message may be sent to i.
func (m *OutgoingMessage) isFor(i saga.Instance) bool {
	return m.Instance.IsZero() || m.Instance == i.ID
}

const ownHeaders = "edda-"

// Send sends a message in one transaction, and returns its id: the SQL function send of the schema writes the message,
// with the same checks as every send, and the audit has an entry with the sender, without the body. Workers are woken
// after the commit. If the message has an ID and was sent before, it is a duplicate and nothing is written.
//
// After an error of Postgres for an argument that the function refuses, Send has sent nothing. If the connection breaks
// during the commit, the message may have been sent: a message with an ID may be sent again.
func (m Messages) Send(ctx context.Context, of OutgoingMessage) (id saga.ID, duplicate bool, err error) {
	header := map[string]string{}
	for name, value := range of.Headers {
		if strings.HasPrefix(strings.ToLower(name), ownHeaders) {
			return id, false, fmt.Errorf("send %.80s: header %.80q may only be set by the bus", of.Kind, name)
		}
		header[name] = value
	}
	err = pgx.BeginTxFunc(ctx, m.o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if of.Saga != "" {
			i, ok, err := m.o.sagas.Show(ctx, tx, of.Saga, of.Key)
			if err == nil && (!ok || !i.Instance.RememberedUntil().IsZero() || !of.isFor(i.Instance)) {
				err = fmt.Errorf("%w: %.80s/%.80q", ErrNoInstance, of.Saga, of.Key)
			}
			if err != nil {
				return err
			}
			header["edda-instance"] = i.Instance.ID.String()
		}
		if id, duplicate, err = m.write(ctx, tx, of, header); err != nil || duplicate {
			return err
		}
		return m.o.audit.Add(ctx, tx, audit.Change{Verb: "message.send", Target: id.String(), Reason: of.Reason,
			After: describe(of)})
	})
	if err != nil {
		return saga.ID{}, false, fmt.Errorf("send %.80s: %w", of.Kind, m.explain(ctx, of, err))
	}
	return id, duplicate, nil
}

func (m Messages) write(
	ctx context.Context, tx pgx.Tx, of OutgoingMessage, header map[string]string,
) (id saga.ID, duplicate bool, err error) {
	text, err := json.Marshal(header)
	if err != nil {
		return id, false, err
	}
	var known, to, after any
	if !of.ID.IsZero() {
		known = [16]byte(of.ID)
	}
	if of.To != "" {
		to = of.To
	}
	if of.Delay > 0 {
		after = pg.Micros(of.Delay)
	}
	err = tx.QueryRow(ctx, m.o.sql.Get("send"), pg.Planned, of.Kind, pg.NonNil(of.Body), string(text), to, known,
		after).Scan((*[16]byte)(&id), &duplicate)
	if err == nil && !duplicate {
		_, err = tx.Exec(ctx, m.o.sql.Get("wake"), pg.Planned, m.o.schema.Channel(), of.Kind, to)
	}
	return id, duplicate, err
}

// describe returns the data of a message for the audit.
func describe(m OutgoingMessage) map[string]any {
	of := map[string]any{"kind": pg.Storable(m.Kind, 200), "bytes": len(m.Body)}
	if m.To != "" {
		of["to"] = pg.Storable(m.To, 200)
	}
	if m.Saga != "" {
		of["instance"] = m.Saga + "/" + m.Key
	}
	if m.Delay > 0 {
		of["delay"] = m.Delay.String()
	}
	return of
}

// explain replaces the errors of the SQL function send by the errors of this package, and adds the remedy.
func (m Messages) explain(ctx context.Context, of OutgoingMessage, err error) error {
	switch pgerr.Code(err) {
	case "ED002":
		hint := ""
		if known, err := m.o.routes.Reload(ctx, m.o.pool); err == nil && of.To == "" {
			hint = wire.Hint(of.Kind, known.Kinds)
		}
		return fmt.Errorf("%w%s: run the endpoint that handles it once, or install it, or name one", ErrNoRoute, hint)
	case "ED003":
		return fmt.Errorf("%w: name one: %w", ErrAmbiguous, err)
	case "ED004":
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return pgerr.Explain(err)
}
