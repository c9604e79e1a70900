package bus_test

import (
	"errors"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func newID(t *testing.T) saga.ID {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return saga.ID(id)
}

// The row of the first send is deleted when it was handled: only the table of ids records that it existed.
func TestSameIDTwiceIsOneMessage(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	id := newID(t)
	if sent := w.send(told{Sum: 1}, saga.WithID(id)); sent.Duplicate || sent.ID != id || sent.Copies != 1 {
		t.Errorf("the first: %+v", sent)
	}
	w.exec(`DELETE FROM ` + w.queue("listener")) // as if it had been handled
	if sent := w.send(told{Sum: 1}, saga.WithID(id)); !sent.Duplicate || sent.ID != id {
		t.Errorf("the second: %+v", sent)
	}
	if n := w.rows("listener"); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}

// Two senders at once: the second waits for the end of the first. It is a duplicate if the first commits.
func TestSameIDWaitsForWhoHasIt(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"commit": true, "rollback": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			id, tx := newID(t), w.begin()
			if _, err := w.bus.SendTx(t.Context(), tx, told{Sum: 1}, saga.WithID(id)); err != nil {
				t.Fatal(err)
			}
			second := make(chan saga.Sent, 1)
			go func() {
				sent, err := w.bus.Send(t.Context(), told{Sum: 1}, saga.WithID(id))
				if err != nil {
					t.Error(err)
				}
				second <- sent
			}()
			w.untilWaiting("claim")
			if commit {
				w.commit(tx)
			} else if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if sent := await(w, "the second send", second); sent.Duplicate != commit {
				t.Errorf("%+v", sent)
			}
			if n := w.rows("listener"); n != 1 {
				t.Errorf("%d messages, want 1", n)
			}
		})
	}
}

func TestSameIDOtherBodyIsRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	id := newID(t)
	w.send(told{Sum: 1}, saga.WithID(id))
	if _, err := w.bus.Send(t.Context(), told{Sum: 2}, saga.WithID(id)); !errors.Is(err, bus.ErrIDConflict) {
		t.Errorf("%v, want ErrIDConflict", err)
	}
	// A handler that does it fails permanently, and its neighbours do not.
	w.start("forward", bus.EndpointOptions{Policy: once, Concurrency: 1},
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m add) error {
			if m.N == 2 {
				ctx.Send(told{Sum: 2}, saga.WithID(id))
			} else {
				ctx.Send(told{Sum: m.N})
			}
			return nil
		}))
	for _, n := range []int{10, 2, 11} {
		w.send(add{N: n})
	}
	w.untilEmpty("forward")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent'
		AND position('different content' IN error) > 0`)
	if n := w.rows("listener"); n != 3 {
		t.Errorf("%d messages, want 3: the first and those of two neighbours", n)
	}
}

// echo is a tally whose steps all send the same message under the id that the request carries.
func echo(store saga.Store, id saga.ID, before func(saga.Message)) *saga.Definition {
	return saga.Define("tally", saga.Options{Store: store},
		saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
			before(m)
			s.Sum += m.N
			ctx.Send(told{Sum: 1}, saga.WithID(id))
			return nil
		}))
}

// The id was claimed in the transaction, which committed without the step: sent again, it was a duplicate of a message
// that had never been sent.
func TestIDOfALostStepCanBeSentAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	id, g := newID(t), newGate(t)
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(echo(saga.Optimistic, id, stopAt(g, 2))))
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":0}')`)
	w.send(add{Key: "a", N: 2})
	await(w, "the step", g.came)
	w.exec(`UPDATE edda.saga SET version = version + 1`)
	g.open()
	w.untilEmpty("tallies")
	if len(eventsOf[event.Conflicted](w)) == 0 {
		t.Error("the step has not lost: this run has tested nothing")
	}
	if got := w.toldSums(); got != "1" {
		t.Errorf("told %q, want one message", got)
	}
}

// Of two steps that send one id the step that claimed it lost its instance. Then the other step's copy is no duplicate.
func TestIDOfALostStepIsSentByItsNeighbour(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	id, g := newID(t), newGate(t)
	def := echo(saga.Optimistic, id, stopAt(g, 2))
	w.install("tallies", bus.Saga(def))
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'tally', k, 1, 1, '{"Sum":0}' FROM unnest('{a,b}'::text[]) k`)
	w.send(add{Key: "a", N: 1})
	w.send(add{Key: "b", N: 2})
	stop := w.start("tallies", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
	await(w, "the second step", g.came)
	w.exec(`UPDATE edda.saga SET version = version + 1 WHERE key = 'a'`)
	holder := w.begin()
	w.execTx(holder, `SELECT FROM edda.saga WHERE key = 'a' FOR NO KEY UPDATE`)
	g.open()
	w.until("the second is done", func() bool { return w.sum("b") == 2 })
	if got := w.toldSums(); got != "1" {
		t.Errorf("told %q by the step that won, want one message", got)
	}
	w.commit(holder)
	w.untilEmpty("tallies")
	stop()
	if got := w.toldSums(); got != "1" {
		t.Errorf("told %q in the end, want one message", got)
	}
}

// The connection breaks while a send commits, and the caller sends again: the result is one message, whether or not the
// first send was committed.
func TestSendAgainAfterUnknownOutcomeIsOneMessage(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultproxy.Fault{
		"it was committed":     {Statement: "commit", Do: faultproxy.DropReply},
		"it was not committed": {Statement: "commit", Do: faultproxy.Swallow},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			b, proxy := w.proxied()
			id := newID(t)
			proxy.Set(fault)
			_, err := b.Send(t.Context(), told{Sum: 1}, saga.WithID(id))
			var unknown *bus.OutcomeUnknownError
			if !errors.As(err, &unknown) || unknown.ID != id {
				t.Fatalf("%v, want an OutcomeUnknownError; broken: %v", err, proxy.Fired())
			}
			proxy.Set()
			if _, err := b.Send(t.Context(), told{Sum: 1}, saga.WithID(id)); err != nil {
				t.Fatal(err)
			}
			if n := w.rows("listener"); n != 1 {
				t.Errorf("%d messages, want 1", n)
			}
		})
	}
}

// A send of one statement commits with it, so the loss of its reply is an unknown outcome too, and the caller must not
// get an error that means that nothing was sent.
func TestLostReplyOfASendIsAnUnknownOutcome(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	b, proxy := w.proxied()
	proxy.Set(faultproxy.Fault{Statement: "insert_one", Do: faultproxy.DropReply})
	_, err := b.Send(t.Context(), told{Sum: 1})
	var unknown *bus.OutcomeUnknownError
	if !errors.As(err, &unknown) {
		t.Errorf("%v, want an OutcomeUnknownError; broken: %v", err, proxy.Fired())
	}
	if n := w.rows("listener"); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}
