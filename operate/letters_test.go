package operate_test

import (
	"errors"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Letters of several endpoints are sent again in their order, all of them or none.
func TestResendIsAllOrNothing(t *testing.T) {
	t.Parallel()
	_, schema := pgtest.Database(t)
	pool := pgtest.Pool(t) // installs endpoints
	o, err := operate.New(pool, operate.Options{Schema: schema.Name()})
	for _, endpoint := range []string{"a", "b"} {
		if err == nil {
			err = o.Queues().Install(t.Context(), endpoint)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var letters []recoverability.Letter
	for n := range 5 {
		letters = append(letters, recoverability.Letter{Endpoint: []string{"a", "b"}[n%2],
			MessageID: saga.ID{byte(n + 1)}, Kind: "tally.add", Header: []byte("{}")})
	}
	ask := func(sql string, tx pgx.Tx) (text string) {
		t.Helper()
		if err := tx.QueryRow(t.Context(), schema.Render(sql)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	const waiting = `SELECT coalesce(string_agg(left(id::text, 2), ' ' ORDER BY due, id), '') FROM :schema.queue_`
	err = pgx.BeginTxFunc(t.Context(), pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		err := operate.Resend(t.Context(), o, tx, append(letters, recoverability.Letter{Endpoint: "nowhere"})...)
		if !errors.Is(err, operate.ErrUndeliverable) || !errors.Is(err, operate.ErrNoRoute) {
			t.Errorf("%v, want ErrUndeliverable and ErrNoRoute", err)
		}
		if sent := ask(waiting+"1", tx) + ask(waiting+"2", tx); sent != "" {
			t.Errorf("%s were sent", sent)
		}
		if err := operate.Resend(t.Context(), o, tx, letters...); err != nil {
			return err
		}
		if a, b := ask(waiting+"1", tx), ask(waiting+"2", tx); a != "01 03 05" || b != "02 04" {
			t.Errorf("a gets %s and b %s, want 01 03 05 and 02 04", a, b)
		}
		if due := ask("SELECT count(*)::text FROM :schema.queue_1 WHERE due <= clock_timestamp()", tx); due != "3" {
			t.Errorf("%s are due, want 3", due)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
