package bus_test

import (
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

type giver struct{ ID saga.ID }
type gift struct{ ID saga.ID }

func (giver) Kind() string { return "given.giver" }
func (gift) Kind() string  { return "given.gift" }

// Two messages of one batch sent the same message under the same id. The second send was a duplicate of the first, and
// both were removed from the batch's writes: the message was lost.
func TestIDGivenTwiceInOneBatchIsSentOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.exec(`CREATE TABLE edda.got (id text); GRANT ALL ON edda.got TO PUBLIC`)
	w.run(w.endpoint("gifts", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m gift) error {
		_, err := tx.Exec(ctx, w.sql(`INSERT INTO edda.got VALUES ($1)`), m.ID.String())
		return err
	})))
	givers := w.endpoint("givers", bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m giver) error {
			ctx.Send(gift(m), saga.WithID(m.ID))
			return nil
		}))
	w.makeQueue(givers.Name())
	if err := givers.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	const ids = 5
	for range ids {
		id := saga.ID(uuid.New())
		for range 3 {
			w.send(giver{ID: id})
		}
	}
	w.run(givers)
	w.untilEmpty("givers")
	w.untilEmpty("gifts")
	if n := w.count(`SELECT count(*) FROM edda.got`); n != ids {
		t.Errorf("%d messages arrived, want each of %d once\n%s", n, ids, w.story())
	}
	if n := w.count(`SELECT count(*) FROM edda.sent_id`); n != ids {
		t.Errorf("%d ids are remembered, want %d", n, ids)
	}
}
