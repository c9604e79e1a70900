package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Limits of an edited message, the same as of a send.
const (
	MaxBody        = 1 << 20 // bytes
	maxHeaders     = 64
	maxHeaderValue = 8 << 10
	maxHeaderBytes = 64 << 10
)

// ownHeaders is the prefix of headers that only the bus sets, such as the sender of a message.
const ownHeaders = "edda-"

// Edit changes a dead letter and retries it, in one transaction. ListEdited returns the old message. The message
// keeps its id, so that its receivers recognize it, unless e.ID is set.
//
// Edit returns the errors of Retry, and an error for a body or headers over the limits of a send, for a header that
// only the bus sets, and, with e.JSON, for a body that is not JSON. After an error nothing has changed.
func (s *Store) Edit(ctx context.Context, db Beginner, r Resender, number int64, e recoverability.Edit) error {
	if err := edit(e).check(); err != nil {
		return fmt.Errorf("edit dead letter %d: %w", number, err)
	}
	endpoint := ""
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		old, err := s.takeOne(ctx, tx, number)
		if err != nil {
			return err
		}
		now, err := edit(e).apply(old)
		if err != nil {
			return err
		}
		pipeline := &pgx.Batch{}
		letter(old).queueEdited(s.sql, pipeline, now.MessageID, e.Reason)
		if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
			return err
		}
		if err := letter(now).fits(); err != nil {
			return err
		}
		endpoint = old.Endpoint
		if err := r.Resend(ctx, tx, now); err != nil {
			return err
		}
		c := letter(old).changed("dead.edit")
		c.Reason, c.After = e.Reason, map[string]saga.ID{"sent_as": now.MessageID}
		return s.audit.Add(ctx, tx, c)
	})
	if err != nil {
		return fmt.Errorf("edit dead letter %d: %w", number, err)
	}
	wake(ctx, r, endpoint)
	return nil
}

// queueEdited queues the insert that keeps l as it was before an edit.
func (l letter) queueEdited(sql pg.Statements, b *pgx.Batch, sentAs saga.ID, reason string) {
	b.Queue(sql.Get("keep_edited"), l.Number, l.Endpoint, l.MessageID.String(), sentAs.String(), l.Kind,
		pg.NonNil(l.Header), pg.NonNil(l.Body), Storable(reason))
}

// edit is an Edit with its checks.
type edit recoverability.Edit

func (e edit) check() error {
	var faults []error
	if len(e.Body) > MaxBody {
		faults = append(faults, fmt.Errorf("the body has %d bytes, the limit is %d", len(e.Body), MaxBody))
	}
	if e.JSON && e.Body != nil && !json.Valid(e.Body) {
		faults = append(faults, errors.New("the body is not JSON"))
	}
	for name, value := range e.Set {
		switch {
		case name == "" || strings.HasPrefix(name, ownHeaders):
			faults = append(faults, fmt.Errorf("header %.80q may only be set by the bus", name))
		case len(name) > maxHeaderValue || len(value) > maxHeaderValue:
			faults = append(faults, fmt.Errorf("header %.80q has more than %d bytes", name, maxHeaderValue))
		case !storableText(name) || !storableText(value):
			faults = append(faults, fmt.Errorf("header %.80q is not UTF-8 text without NUL", name))
		}
	}
	for _, name := range e.Remove {
		if strings.HasPrefix(name, ownHeaders) {
			faults = append(faults, fmt.Errorf("header %.80q may only be set by the bus", name))
		}
	}
	return errors.Join(faults...)
}

func storableText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// apply returns the message that is sent instead of l.
func (e edit) apply(l recoverability.Letter) (recoverability.Letter, error) {
	if e.Body != nil {
		l.Body = e.Body
	}
	if !e.ID.IsZero() {
		l.MessageID = e.ID
	}
	if len(e.Set)+len(e.Remove) == 0 {
		return l, nil
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(l.Header, &values); err != nil {
		values = map[string]json.RawMessage{} // the header cannot be read: start with an empty one
	}
	for _, name := range e.Remove {
		delete(values, name)
	}
	for name, value := range e.Set {
		text, err := json.Marshal(value)
		if err != nil {
			return recoverability.Letter{}, err
		}
		values[name] = text
	}
	if err := withinLimits(values); err != nil {
		return recoverability.Letter{}, err
	}
	header, err := json.Marshal(values)
	l.Header = header
	return l, err
}

func withinLimits(values map[string]json.RawMessage) error {
	entries, bytes := 0, 0
	for name, value := range values {
		if !strings.HasPrefix(name, ownHeaders) {
			entries++
			bytes += len(name) + len(value)
		}
	}
	if entries > maxHeaders || bytes > maxHeaderBytes {
		return fmt.Errorf("%d headers with %d bytes, the limits are %d and %d", entries, bytes, maxHeaders,
			maxHeaderBytes)
	}
	return nil
}

// ListEdited returns edits in the order of their numbers. It uses only MessageID, After and Limit of f.
func (s *Store) ListEdited(
	ctx context.Context, q Queryer, f recoverability.LetterFilter,
) ([]recoverability.Original, error) {
	if err := filter(f).check(); err != nil {
		return nil, fmt.Errorf("list edited dead letters: %w", err)
	}
	return collect(ctx, q, listing{"edited dead letters", s.sql.Get("list_edited")}, scanEdited, pg.Planned, f.After,
		filter(f).messageID(), filter(f).limit())
}

func scanEdited(row pgx.CollectableRow) (e recoverability.Original, err error) {
	var id, as string
	if err = row.Scan(&e.Number, &e.Letter, &e.Endpoint, &id, &as, &e.Kind, &e.Header, &e.Body, &e.Reason, &e.By,
		&e.At); err != nil {
		return recoverability.Original{}, err
	}
	e.At = e.At.UTC()
	if e.MessageID, err = saga.ParseID(id); err == nil {
		e.SentAs, err = saga.ParseID(as)
	}
	return e, err
}
