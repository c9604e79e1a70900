package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

type (
	placed  struct{ Order, Note string }
	charge  struct{ Order string }
	charged struct{ Order string }
	bumped  struct{ Order string }
	late    struct{}
)

func (placed) Kind() string  { return "order.place" }
func (charge) Kind() string  { return "card.charge" }
func (charged) Kind() string { return "card.charged" }
func (bumped) Kind() string  { return "order.bump" }
func (late) Kind() string    { return "order.late" }

type orderState struct {
	Note  string
	Paid  bool
	Bumps int
}

// hostile would clear a terminal, reverse its text and forge a line.
const hostile = "7\x1b[2J\u202e\nedda"

var errHostile = errors.New("no bump " + hostile)

// shop runs a saga of orders and a service of cards. Every second bump fails first.
type shop struct {
	*world
	bus  *bus.Bus
	stop func() // ends both
}

func newShop(t *testing.T, store saga.Store) *shop {
	t.Helper()
	w := migrated(t)
	s := &shop{world: w}
	b, err := bus.New(w.pool, bus.Options{Schema: w.schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
		History: history.Options{Level: history.Bodies}})
	if err != nil {
		t.Fatal(err)
	}
	s.bus = b
	bumps := 0
	orders := saga.Define("order", saga.Options{Store: store},
		saga.StartedBy(func(m placed) string { return m.Order },
			func(o *orderState, ctx *saga.Context, m placed) error {
				o.Note = m.Note
				ctx.Send(charge{Order: m.Order})
				ctx.Timeout(time.Hour, late{}, saga.Named("payment"))
				return nil
			}),
		saga.OnReply(func(o *orderState, ctx *saga.Context, _ charged) error {
			o.Paid = true
			ctx.CancelTimeout("payment")
			return nil
		}),
		saga.OnTimeout(func(*orderState, *saga.Context, late) error { return nil }),
		saga.Handles(func(m bumped) string { return m.Order }, func(o *orderState, ctx *saga.Context, _ bumped) error {
			if bumps++; bumps%3 == 2 {
				return errHostile
			}
			if o.Bumps++; o.Bumps == 2 {
				ctx.Complete()
			}
			return nil
		}))
	cards := bus.Handle(func(ctx *bus.Context, m charge) error {
		ctx.Reply(charged(m))
		return nil
	})
	stopCards := s.start("cards", bus.EndpointOptions{}, cards)
	stopOrders := s.start("orders", bus.EndpointOptions{Concurrency: 1,
		Policy: recoverability.Always(recoverability.RetryIn(1))}, bus.Saga(orders))
	s.stop = func() { stopCards(); stopOrders() }
	return s
}

func (s *shop) start(name string, o bus.EndpointOptions, part bus.Part) (stop func()) {
	s.t.Helper()
	e, err := bus.NewEndpoint(s.bus, name, o, part)
	if err == nil {
		err = e.Install(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *shop) send(m saga.Message) saga.ID {
	s.t.Helper()
	sent, err := s.bus.Send(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return sent.ID
}

// counts waits until a statement counts want rows.
func (s *shop) counts(want int, sql string) {
	s.t.Helper()
	end := time.After(pgdev.Patience(20 * time.Second))
	for tick := time.NewTicker(10 * time.Millisecond); s.count(sql) != want; {
		select {
		case <-tick.C:
		case <-end:
			s.t.Fatalf("%s counts %d, want %d", sql, s.count(sql), want)
		}
	}
}

// live sends messages to an order with a hostile key until its last version, and returns the id of the first message.
func (s *shop) live(versions int) (first saga.ID) {
	s.t.Helper()
	first = s.send(placed{Order: hostile, Note: hostile})
	for version := 2; version <= versions; version++ {
		s.counts(version, `SELECT coalesce(max(version), 0) FROM edda.saga`)
		s.send(bumped{Order: hostile})
	}
	return first
}

const escapedKey = `7\x1b[2J\u202e\nedda`

func TestHistoryShow(t *testing.T) {
	for name, store := range map[string]saga.Store{"pessimistic": saga.Pessimistic, "optimistic": saga.Optimistic} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, store)
			s.live(3)
			s.counts(0, `SELECT count(*) FROM edda.saga`)
			s.prints(s.want(exitDone, "history", "show", "order", hostile).out, `
				| order `+escapedKey+`, which lived from TIME to TIME, completed
				| instance ID
				| VERSION TIME IN STATE OUT
				| 1 TIME order.place began {"Note":"7\u001b[2J\u202e\nedda","Paid":false,"Bumps":0} card.charge
				|  order.late in 1h0m
				| 2 TIME card.charged from cards Paid: false → true 1 timeout cancelled
				| 3 TIME order.bump Bumps: 0 → 1
				| - TIME order.bump, attempt 1 failed: no bump 7\x1b[2J\u202e…
				| 4 TIME order.bump, attempt 2 ended, Bumps: 1 → 2`)
			s.live(2)
			s.counts(3, `SELECT coalesce(max(version), 0) FROM edda.saga`)
			out := s.want(exitDone, "history", "show", "order", hostile, "--limit", "1").out
			s.prints(out, `
				| order `+escapedKey+`, which lives since TIME
				| instance ID
				| VERSION TIME IN STATE OUT
				| 3 TIME order.bump Bumps: 0 → 1
				| There may be more: --before ID
				| other life: order `+escapedKey+`, which lived from TIME to TIME, completed; --life ID`)
			ids := anyID.FindAllString(out, -1)
			s.prints(s.want(exitDone, "history", "show", "order", hostile, "--limit", "1", "--before", ids[1]).out, `
				| order `+escapedKey+`, which lives since TIME
				| instance ID
				| VERSION TIME IN STATE OUT
				| 2 TIME card.charged from cards Paid: false → true 1 timeout cancelled
				| There may be more: --before ID
				| other life: order `+escapedKey+`, which lived from TIME to TIME, completed; --life ID`)
			says(t, s.want(exitDone, "history", "show", "order", hostile, "--life", ids[2]).out, "attempt 1 failed",
				"other life: order "+escapedKey+", which lives since")
			says(t, s.want(exitDone, "history", "find", ids[2]).out, "attempt 1 failed")
			says(t, s.want(exitDone, "find", ids[2]).out, "edda history show order '"+escapedKey+"' --life "+ids[2])
			says(t, s.want(exitDone, "saga", "show", "order", hostile).out, "history:", "Bumps: 0 → 1", "card.charged")
			s.prints(s.want(exitDone, "history", "ended", "order").out, `
				| KEY INSTANCE BEGAN ENDED OUTCOME
				| `+escapedKey+` ID TIME TIME completed`)
		})
	}
}

func TestHistoryFind(t *testing.T) {
	s := newShop(t, saga.Pessimistic)
	first := s.live(1)
	s.counts(2, `SELECT coalesce(max(version), 0) FROM edda.saga`)
	s.prints(s.want(exitDone, "history", "find", first.String(), "--body").out, `
		| message ID
		| kind order.place
		| intent send
		| from -
		| conversation ID
		| because of message -
		| manifest -
		| run -
		| sent TIME
		| orders handled it at TIME, and began order `+escapedKey+`.
		| TIME ENDPOINT ATTEMPT FATE TOOK HOST ERROR OUT
		| TIME orders 1 handled TOOK HOST - card.charge, order.late in 1h0m
		| body:
		|  {
		|  "Order": "7\u001b[2J\u202e\nedda",
		|  "Note": "7\u001b[2J\u202e\nedda"
		|  }`)
	s.prints(s.want(exitDone, "history", "conversation", first.String()).out, `
		| order.place ID
		|  ✓ orders handled it at TIME, and began order `+escapedKey+`.
		|  card.charge ID
		|  ✓ cards handled it at TIME.
		|  card.charged ID
		|  ✓ orders handled it at TIME, in version 2 of order `+escapedKey+`.
		|  order.late ID
		|  ⊘ Its saga has cancelled it in orders at TIME.`)
	s.stop()
	waits := s.send(bumped{Order: hostile})
	s.prints(s.want(exitDone, "find", waits.String()).out, `
		| IS SAYS COMMAND
		| message order.bump: It waits in the queue of orders, and is the next. No process runs the endpoint. `+
		`edda history find ID`)
	out := s.want(exitDone, "find", first.String()).out
	says(t, out, "conversation", "edda history conversation "+first.String(), "orders handled it")
	s.exec(`INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		VALUES ('orders', '00000000-0000-0000-0000-000000000017', 'order.place', '{}', '{}', 3, 0, 'r', E'bad\x1b')`)
	for _, id := range []string{"00000000-0000-0000-0000-000000000017", "1"} {
		says(t, s.want(exitDone, "find", id).out, "dead letter", "edda dead show 1")
	}
	s.want(exitDone, "history", "find", "00000000-0000-0000-0000-000000000017")
	for _, command := range []string{"find", "history find", "history conversation"} {
		says(t, s.want(exitNotFound, append(strings.Fields(command), "00000000-0000-0000-0000-000000000099")...).err,
			"00000000-0000-0000-0000-000000000099")
	}
	says(t, s.want(exitNotFound, "find", "99").err, "99")
	says(t, s.want(exitNotFound, "history", "show", "order", "8").err, "order/8")
	says(t, s.want(exitNotFound, "history", "export", "order", "8").err, "order/8")
	s.prints(s.want(exitDone, "history", "ended", "order").out, `| History has no ended instance.`)
}

type lineJSON struct {
	Type    string          `json:"type"`
	State   json.RawMessage `json:"state"`
	Version int64           `json:"version"`
	Message struct {
		Kind string  `json:"kind"`
		Body *string `json:"body"`
	} `json:"message"`
	Out []struct {
		Kind string  `json:"kind"`
		Body *string `json:"body"`
	} `json:"out"`
	Fate string `json:"fate"`
}

// An export has all events in their order, with bodies and states.
func TestHistoryExport(t *testing.T) {
	s := newShop(t, saga.Pessimistic)
	s.live(3)
	s.counts(0, `SELECT count(*) FROM edda.saga`)
	out := s.want(exitDone, "history", "export", "order", hostile).out
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Error("it controls a terminal")
	}
	var told []string
	for text := range strings.Lines(out) {
		var line lineJSON
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		switch line.Type {
		case "message":
			told = append(told, line.Message.Kind+" "+line.Fate)
			if line.Message.Body == nil || line.Message.Kind == "order.place" && *line.Out[0].Body == "" {
				t.Errorf("no body in %s", text)
			}
		case "state":
			var state orderState
			if err := json.Unmarshal(line.State, &state); err != nil || state.Note != hostile {
				t.Errorf("state %s, %v", line.State, err)
			}
			told = append(told, "state")
		default:
			told = append(told, line.Type)
		}
	}
	if want := []string{"life", "order.place handled", "state", "card.charged handled", "state", "order.bump handled",
		"state", "order.bump retried", "order.bump handled", "state"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

func TestHistoryJSON(t *testing.T) {
	s := newShop(t, saga.Pessimistic)
	first := s.live(1)
	s.counts(2, `SELECT coalesce(max(version), 0) FROM edda.saga`)
	var shown struct {
		Life     struct{ Instance saga.ID }
		Lives    []struct{ Ended *time.Time }
		Next     string
		Timeline []struct {
			Version  int64
			Change   string
			Diff     string
			State    orderState
			Messages []struct {
				Message struct{ Kind string }
				Out     []struct{ Kind, Body string }
			}
		}
	}
	s.decode(&shown, "history", "show", "order", hostile, "--json")
	if v := shown.Timeline; len(v) != 2 || v[1].Change != "changed" || !v[1].State.Paid || v[0].State.Note != hostile ||
		v[1].Diff != "Paid: false → true" || v[0].Messages[0].Out[0].Kind != "card.charge" || shown.Next != "" ||
		v[0].Messages[0].Out[0].Body != "" || len(shown.Lives) != 1 || shown.Lives[0].Ended != nil {
		t.Errorf("%+v", shown)
	}
	var trace struct {
		Message  struct{ Kind, Body string }
		Places   []struct{ State, Endpoint, Says string }
		Attempts []struct {
			Fate string
			Key  string
		}
	}
	s.decode(&trace, "history", "find", first.String(), "--json", "--body")
	if trace.Message.Kind != "order.place" || !strings.Contains(trace.Message.Body, "Note") || len(trace.Places) != 1 ||
		trace.Places[0].State != "handled" || trace.Attempts[0].Fate != "handled" || trace.Attempts[0].Key != hostile {
		t.Errorf("%+v", trace)
	}
	type node struct {
		Message struct{ Kind string }
		Effects []struct {
			Kind   string
			Count  int
			States map[string]int
		}
	}
	var conversation struct {
		Count int
		More  bool
		Roots []node
	}
	s.decode(&conversation, "history", "conversation", first.String(), "--json")
	if c := conversation; c.Count != 4 || c.More || len(c.Roots) != 1 || len(c.Roots[0].Effects) != 2 ||
		c.Roots[0].Effects[1].States["cancelled"] != 1 {
		t.Errorf("%+v", c)
	}
}

func TestHistorySetAndKeep(t *testing.T) {
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	w.prints(w.want(exitDone, "history", "set", "orders", "bodies", "--sample", "12.5%").out,
		`| Endpoint orders keeps the history that is set: bodies 12.5%.`)
	w.prints(w.want(exitDone, "endpoint", "list").out, `
		| ENDPOINT STATE SINCE PAUSED BY REASON CONCURRENCY BY HISTORY
		| orders open - - - program endpoint bodies 12.5%`)
	w.prints(w.want(exitDone, "history", "set", "orders", "--sample", "0.1", "--json").out, `
		| {
		|  "endpoint": "orders",
		|  "history": "",
		|  "history_sample": 0.1
		| }`)
	w.prints(w.want(exitDone, "history", "set", "orders", "--reset").out,
		`| Endpoint orders keeps the history that is set: program.`)
	says(t, w.want(exitDone, "endpoint", "list", "--json").out, `"history": ""`, `"history_sample": null`)
	says(t, w.want(exitNotFound, "history", "set", "nowhere", "off").err, "nowhere")

	has := `; it has ` + view.Bytes(int64(w.count(`SELECT sum(edda.ring_bytes('history', slot))
		FROM generate_series(0, 3) slot`)))
	w.prints(w.want(exitDone, "history", "keep").out,
		`| The history is kept for 168h0m0s, as long as it has no more than 10 GB`+has+`; it was last rotated at TIME.`)
	w.prints(w.want(exitDone, "history", "keep", "72h", "--size", "1536MB").out,
		`| The history is kept for 72h0m0s, as long as it has no more than 1.5 GB`+has+`; it was last rotated at TIME.`)
	w.prints(w.want(exitDone, "history", "keep", "--size", "0").out,
		`| The history is kept for 72h0m0s, however large it is`+has+`; it was last rotated at TIME.`)
	says(t, w.want(exitDone, "history", "keep", "--json").out, `"most_bytes": 0`, `"keep_seconds": 259200`)
	for command, complaint := range map[string]string{
		"set orders": "--reset", "set orders off --reset": "--reset", "set orders much": "want off, steps",
		"set orders off --sample 0%": "--sample 0%", "set orders off --sample 101%": "--sample 101%",
		"keep soon": "want a duration", "keep 0s": "want a duration", "keep --size lots": "--size lots",
		"keep --size -1GB": "--size -1GB", "keep --size 99999999999TB": "--size 99999999999TB",
		"find seven": "a UUID", "conversation seven": "want a UUID", "conversation --limit 0 " + someID: "--limit is 0",
		"show order 7 --before x": "--before x", "show order 7 --life x": "--life x",
		"show order 7 --limit 0": "--limit is 0", "export order 7 --life x": "--life x",
		"ended order --after 7": "--after 7", "ended order --limit 0": "--limit is 0",
	} {
		says(t, w.want(exitUsage, append([]string{"history"}, strings.Fields(command)...)...).err, complaint)
	}
	says(t, w.want(exitUsage, "find", "seven").err, "want a UUID, or the number")
}

const someID = "00000000-0000-0000-0000-000000000001"

// find recognises the id of a run, whether its message was sent or not.
func TestFindKnowsRuns(t *testing.T) {
	w, _ := scheduled(t)
	run := anyID.FindString(w.want(exitDone, "manifest", "trigger", "tidy").out)
	out := w.want(exitDone, "find", run).out
	says(t, out, "run", "of manifest tidy, ", "edda run show "+run)
}
