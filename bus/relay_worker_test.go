package bus_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	killEvery = 700 // messages forwarded, by all processes together
	kills     = 3
)

// relay is a worker process that relays into a table, which is the other side and records the order of the messages.
// The process that forwards the 700th message, and each further multiple for a few times, dies right after it, with the
// rest of its batch in hand.
func (s workerSpec) relay(pool *pgxpool.Pool, b *bus.Bus) (*outbox.Relay, error) {
	o := soonRelayed()
	o.BatchMax, o.Holder = 300, fmt.Sprintf("relay-%d", os.Getpid())
	give := "INSERT INTO " + pgx.Identifier{s.Schema, "abroad"}.Sanitize() + " (id, body) VALUES ($1, $2) RETURNING n"
	return bus.NewRelay(b, "border", o, func(ctx context.Context, messages []*saga.Delivery) []error {
		errs, failed := make([]error, len(messages)), false
		for n, d := range messages {
			if failed {
				errs[n] = outbox.ErrBehind
				continue
			}
			came := 0
			errs[n] = pool.QueryRow(ctx, give, d.Info.ID, d.Body).Scan(&came)
			if failed = errs[n] != nil; !failed && came%killEvery == 0 && came <= kills*killEvery {
				killer{How: "kill"}.die()
			}
		}
		return errs
	}, crossed{}.Kind())
}

// One of three processes relays, and is killed in the middle of a batch, three times. A different process takes over,
// and every message arrives, with its id and bytes, in the order of first copies; only the messages that a dead process
// had in hand come twice.
func TestKilledRelayIsTakenOver(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.exec(`CREATE TABLE edda.abroad (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL,
		body bytea NOT NULL)`)
	if w.role != "" {
		w.exec(`GRANT INSERT, SELECT ON edda.abroad TO "` + w.role + `"`)
	}
	const total = 3000
	w.exec(`INSERT INTO `+w.queue("border")+` (due, id, kind, header, body)
		SELECT now() - interval '1 minute' + n * interval '1 microsecond', gen_random_uuid(), $2, '{}',
		convert_to('{"N":' || n || '}', 'UTF8') FROM generate_series(1, $1) n`,
		total, crossed{}.Kind())
	all := func(sql string) (texts []string) {
		rows, err := w.owner.Query(t.Context(), w.sql(sql))
		if err == nil {
			texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	want := all(`SELECT id || ' ' || convert_from(body, 'UTF8') FROM ` + w.queue("border") + ` ORDER BY due, id`)

	s := w.supervise(3, workerSpec{Relay: true})
	w.untilWithin(pgdev.Patience(time.Minute), "everything is relayed",
		func() bool { return w.count(`SELECT count(*) FROM `+w.queue("border")) == 0 })
	s.stop()
	if n := s.died(); n != kills {
		t.Errorf("%d processes died, want %d", n, kills)
	}
	got := all(`SELECT id || ' ' || convert_from(body, 'UTF8') FROM edda.abroad GROUP BY id, body ORDER BY min(n)`)
	if !slices.Equal(got, want) {
		t.Errorf("%d messages arrived, want the %d that were sent, in their order", len(got), len(want))
	}
	if n := w.count(`SELECT count(*) FROM edda.abroad`); n <= total || n > total+kills*300 {
		t.Errorf("%d copies arrived, want more than %d, and %d more at most", n, total, kills*300)
	}
	w.want(0, `SELECT (SELECT count(*) FROM edda.dead_letter) + (SELECT count(*) FROM edda.discarded)`)
	if took := w.count(`SELECT epoch FROM edda.lease WHERE name = 'relay/border'`); took <= kills {
		t.Errorf("the lease is in its term %d, want one more than %d at least", took, kills)
	}
}
