package bus_test

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// card has a number that must not be in the history.
type card struct {
	Order string
	Card
}

func (card) Kind() string { return "card" }

type wallet struct {
	Card card
	Rest string
}

const number = "4711-0815"

// pages returns all pages of the history, as text.
func (w *world) pages() string {
	w.t.Helper()
	return w.text(`SELECT string_agg(encode(page, 'escape'), '') FROM edda.history`)
}

// page secret
// Card is part of a message or a state.
type Card struct {
	Number string `edda:"secret"`
	Owner  string
}

// end

// A field that is marked as secret is in no page, neither as part of a state nor of a message that came or was sent.
func TestSecretsAreNotInTheHistory(t *testing.T) {
	w := newWorld(t, bus.Options{
		History: history.Options{Level: history.Bodies},
		Redact: func(kind string, text []byte) []byte {
			switch kind {
			case "order.place":
				panic("a fault of the user")
			case "order.bump":
				return nil
			}
			return []byte(strings.ReplaceAll(string(text), "private", "-"))
		},
	})
	def := saga.Define("wallet", saga.Options{}, saga.StartedBy(func(m card) string { return m.Order },
		func(s *wallet, ctx *saga.Context, m card) error {
			s.Card, s.Rest = m, "private and long "+strings.Repeat("x", 300)
			ctx.Send(card{Order: m.Order, Card: Card{Number: number}}, saga.To("b"))
			ctx.Send(place{Order: "panics"}, saga.To("b"))
			ctx.Send(bump{Order: "nothing is kept"}, saga.To("b"))
			return nil
		}))
	nothing := func(*bus.Context, pgx.Tx, place) error { return nil }
	w.start("b", bus.EndpointOptions{}, bus.HandleTx(func(*bus.Context, pgx.Tx, card) error { return nil }),
		bus.HandleTx(nothing), bus.HandleTx(func(*bus.Context, pgx.Tx, bump) error { return nil }))
	w.start("a", bus.EndpointOptions{}, bus.Saga(def))
	w.send(card{Order: "1", Card: Card{Number: number}}, saga.To("a"))
	w.send(card{Order: "1", Card: Card{Number: number}}, saga.To("a"))
	w.untilEmpty("a")
	w.untilEmpty("b")
	kept := w.pages()
	for _, secret := range []string{number, "private", "panics", "nothing is kept"} {
		if strings.Contains(kept, secret) {
			t.Errorf("the history has %q", secret)
		}
	}
	if n := strings.Count(kept, "[secret]"); n < 5 { // in two states, two messages and the messages that they sent
		t.Errorf("%d secrets are masked", n)
	}
	if w.text(`SELECT state ->> 'Card' FROM edda.saga`) == "" || !strings.Contains(
		w.text(`SELECT state ->> 'Card' FROM edda.saga`), number) {
		t.Error("the instance itself has lost its secret")
	}
}

// A misspelt tag would not hide the secret: it is a fault of the definition, and of the endpoint.
func TestMisspeltSecretIsAFault(t *testing.T) {
	type bad struct {
		N string `edda:"sercet"`
	}
	def := saga.Define("bad", saga.Options{}, saga.StartedBy(func(m card) string { return m.Order },
		func(*bad, *saga.Context, card) error { return nil }))
	if err := def.Err(); err == nil || !strings.Contains(err.Error(), `has the tag edda:"sercet", want edda:"secret"`) {
		t.Error(err)
	}
}
