package bus_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A transaction of database/sql leads to a relay as one of pgx does: a rollback leaves no message.
func TestSendSQLReachesTheRelay(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	db := stdlib.OpenDBFromPool(w.pool)
	defer func() { _ = db.Close() }()
	var want []saga.ID
	for _, end := range []string{"rollback", "commit"} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent, sendErr := w.bus.SQL(nil).SendTx(t.Context(), tx, crossed{N: 1})
		published, publishErr := w.bus.SQL(nil).PublishTx(t.Context(), tx, crossed{N: 2})
		if end == "commit" {
			err, want = tx.Commit(), []saga.ID{sent.ID, published.ID}
		} else {
			err = tx.Rollback()
		}
		if err := errors.Join(err, sendErr, publishErr); err != nil {
			t.Fatal(err)
		}
	}
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
}

// A message that came from the relay's name is answered through the relay: by a saga, by a handler in its transaction
// and by a handler outside, and the answer names the message that it answers.
func TestRepliesReachTheRelay(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	host := saga.Define("host", saga.Options{}, saga.StartedBy(func(m greet) string { return m.Key }, (*welcome).reply))
	w.start("hosts", bus.EndpointOptions{}, bus.Saga(host))
	w.start("porters", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m greet) error {
		ctx.Reply(crossed{Key: m.Key})
		return nil
	}))
	w.start("guides", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m greet) error {
		ctx.Reply(crossed{Key: m.Key})
		return nil
	}))
	from, asked := map[string]saga.ID{}, newID(t)
	for _, endpoint := range []string{"hosts", "porters", "guides"} {
		id := newID(t)
		w.arrive(endpoint, outbox.IngestMessage{ID: id.String(), Kind: greet{}.Kind(), Body: []byte(`{"Key":"a"}`),
			Header: map[string]string{
				"edda-from": "border", "edda-conversation": asked.String(), "edda-correlation": id.String(),
			}})
		from[endpoint] = id
	}
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.until("three answers are abroad", func() bool { return len(a.ids()) == 3 })
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, info := range a.infos {
		if info.Intent != saga.Answer || info.RelatedTo != from[info.From] || info.ConversationID != asked {
			t.Errorf("%s answered with %+v, want an answer to %s in the conversation %s", info.From, info,
				from[info.From], asked)
		}
		delete(from, info.From)
	}
	if len(from) > 0 {
		t.Errorf("nobody answered %v", from)
	}
}

type welcome struct{}

func (*welcome) reply(ctx *saga.Context, m greet) error {
	ctx.Reply(crossed{Key: m.Key})
	return nil
}
