//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The session behind PgBouncer dies with the answer to a COMMIT. PgBouncer then makes up an error of its own, with a
// SQLSTATE, which says nothing of what became of the transaction: here it was committed.
func TestCommitWhoseSessionDiedIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	schema := pgdev.Schema(t)
	if err := migrate.Up(t.Context(), pgdev.Pool(t), migrate.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	backend, err := faultproxy.Backend(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Listen(t.Context(), backend, faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	b, err := pgdev.StartBouncer(t.Context(), proxy.DSN(pgdev.DSN(t)),
		pgdev.BouncerOptions{Binary: os.Getenv("PGBOUNCER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	made, err := bus.New(openPool(t, b.DSN()+"&default_query_exec_mode=cache_describe"),
		bus.Options{Schema: schema, AutoInstall: true, Wakeup: bus.PollOnly, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.InstallQueue(t.Context(), "tasks"); err != nil {
		t.Fatal(err)
	}
	id, err := saga.ParseID("0197a000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	for name, send := range map[string]func(ctx context.Context) error{
		"InTx": func(ctx context.Context) error {
			return made.InTx(ctx, func(tx pgx.Tx) error {
				_, err := made.SendTx(ctx, tx, task{}, saga.To("tasks"))
				return err
			})
		},
		"Send with an id": func(ctx context.Context) error {
			_, err := made.Send(ctx, task{}, saga.To("tasks"), saga.WithID(id))
			return err
		},
	} {
		proxy.Set(faultproxy.Fault{Statement: "commit", Do: faultproxy.DropReply})
		err := send(t.Context())
		var unknown *bus.OutcomeUnknownError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: %v, want an OutcomeUnknownError; broken: %v", name, err, proxy.Fired())
		}
		proxy.Set()
	}
}
