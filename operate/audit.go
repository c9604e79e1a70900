package operate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/edda-go/edda/internal/store/audit"
)

// Actor is the person or program that makes a change. Every change by an operator, with the command or with a program
// that calls this package or package scheduler, adds an AuditEntry in the transaction of the change: both commit or
// neither does. Exceptions are migrations, the installation of endpoints, and a Trigger without an actor, because
// programs trigger too. A change without an effect, such as a second cancel of a run, has no entry.
//
// A program passes the actor in the context. Without an actor the entry has only the role of the database connection,
// which every entry has. The database cannot verify the name of the actor.
type Actor struct {
	Name string // a person or a program, such as an e-mail address; at most 200 bytes are kept
	From string // an address, a host or a program; "" is the application_name of the connection
}

// WithActor returns a context with the actor of the changes made with it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return audit.WithActor(ctx, audit.Actor(a))
}

// WithReason returns a context with the reason of the changes made with it. A method with a reason of its own prefers
// that.
func WithReason(ctx context.Context, reason string) context.Context {
	return audit.WithReason(ctx, reason)
}

// AuditEntry is one change.
type AuditEntry struct {
	Number int64
	At     time.Time // by the database's clock
	Actor  string    // as the program has passed it, or ""
	Role   string    // of the database
	From   string
	Verb   string
	Target string
	Reason string
	Before json.RawMessage // nil if no value was recorded
	After  json.RawMessage
}

// By returns the actor, or the role of the database if there is no actor.
func (e AuditEntry) By() string {
	if e.Actor != "" {
		return e.Actor
	}
	return e.Role
}

// AuditFilter selects entries. A zero field is no condition.
type AuditFilter struct {
	By     string // the actor, or the role of entries without an actor
	Verb   string // such as endpoint.pause, or endpoint for all verbs of endpoints
	Target string
	Since  time.Time
	Until  time.Time // exclusive
	Before int64     // the number of the last entry of the preceding page
	Limit  int       // entries; 0 is 100, at most 10,000
}

// Audit returns the changes by operators that a filter selects, the newest first. Entries are kept for 400 days. A
// Limit or Before out of range is an error. The pool's role needs SELECT.
func (o *Operator) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	found, err := o.audit.List(ctx, o.pool, audit.Filter(f))
	if err != nil {
		return nil, err
	}
	all := make([]AuditEntry, 0, len(found))
	for _, e := range found {
		all = append(all, AuditEntry(e))
	}
	return all, nil
}
