//go:build bouncer

package bouncer_test

import (
	"errors"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The session behind PgBouncer dies with the answer to a COMMIT. PgBouncer then makes up an error of its own, with a
// SQLSTATE, which says nothing about the transaction: here it was committed.
func TestCommitWhoseSessionDiedIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Proxy(t)
	pool, schema := pgtest.Database(t)
	b := newBus(t, openPool(t, startBouncer(t, dsn, nil).DSN()+described), schema.Name(), bus.PollOnly)
	if err := newBus(t, pool, schema.Name(), bus.PollOnly).InstallQueue(t.Context(), "tasks"); err != nil {
		t.Fatal(err)
	}
	for name, send := range map[string]func() error{
		"InTx": func() error {
			return b.InTx(t.Context(), func(tx pgx.Tx) error {
				_, err := b.SendTx(t.Context(), tx, task{}, saga.To("tasks"))
				return err
			})
		},
		"Send with an id": func() error {
			_, err := b.Send(t.Context(), task{}, saga.To("tasks"), saga.WithID(saga.ID(uuid.New())))
			return err
		},
	} {
		proxy.Set(faultproxy.Fault{Statement: "commit", Do: faultproxy.DropReply})
		err := send()
		if unknown := (*bus.OutcomeUnknownError)(nil); !errors.As(err, &unknown) {
			t.Errorf("%s: %v, want an OutcomeUnknownError; broken: %v", name, err, proxy.Fired())
		}
		proxy.Set()
	}
}
