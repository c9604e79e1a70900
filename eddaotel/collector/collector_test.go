package main

import (
	"slices"
	"strings"
	"testing"
)

const placing = 40 // orders, of which four are declined

func TestCollectorReceivesADemo(t *testing.T) {
	d := order(t, placing)
	t.Logf("%d spans and %d points", len(d.spans), len(d.points))
	t.Run("every parent and every link is there", d.resolves)
	t.Run("an order is one tree", d.trees)
	t.Run("every call is settled once", d.settles)
	t.Run("metrics", d.counts)
}

func (d demo) resolves(t *testing.T) {
	known := map[string]bool{}
	services := map[string]int{}
	for _, s := range d.spans {
		known[s.trace+s.id] = true
		services[s.service]++
	}
	for _, service := range []string{front, ordersProcess, paymentProcess} {
		if services[service] == 0 {
			t.Errorf("%s has no span", service)
		}
	}
	for _, s := range d.spans {
		if s.parent != "" && !known[s.trace+s.parent] {
			t.Errorf("%s %s has a parent that is not there", s.service, s.name)
		}
		for _, l := range s.links {
			if !known[l.trace+l.id] {
				t.Errorf("%s %s links to a span that is not there", s.service, s.name)
			}
		}
	}
}

const paidTree = `
front: order
	front: send order.place
		orders: process orders order.place
			payments: process payments card.charge
				orders: process orders card.charged
					orders: process page order.paid
					payments: process shipping order.paid
`

const declinedTree = `
front: order
	front: send order.place
		orders: process orders order.place
			payments: process payments card.charge
				orders: process orders card.declined
					orders: process page order.declined
`

// trees compares the trace of each order. It leaves out settle and relay spans, which may be of several messages.
func (d demo) trees(t *testing.T) {
	calls := map[string]map[string]int{} // of each conversation, by trace
	for _, s := range d.spans {
		if c := s.get("messaging.message.conversation_id"); c != "" && strings.HasPrefix(s.name, "process ") {
			if calls[c] == nil {
				calls[c] = map[string]int{}
			}
			calls[c][s.trace]++
		}
	}
	if len(d.placed) != placing || len(calls) != placing {
		t.Errorf("%d orders in %d conversations, want %d", len(d.placed), len(calls), placing)
	}
	for conversation, refused := range d.placed {
		want := paidTree
		if refused {
			want = declinedTree
		}
		root := d.roots[conversation]
		if got := d.tree(root); got != want || len(calls[conversation]) != 1 {
			t.Errorf("conversation %s has calls in %v, want all in %s, as\n%s\nnot\n%s", conversation,
				calls[conversation], root, want, got)
		}
	}
}

func (d demo) tree(trace string) string {
	text := "\n"
	var below func(parent, indent string)
	below = func(parent, indent string) {
		var children []span
		for _, s := range d.spans {
			if s.trace == trace && s.parent == parent && !slices.Contains([]string{"settle", "relay"},
				s.get("messaging.operation.name")) {
				children = append(children, s)
			}
		}
		slices.SortFunc(children, func(a, b span) int { return strings.Compare(a.name, b.name) })
		for _, s := range children {
			line := indent + s.service + ": " + s.name
			if strings.HasPrefix(s.name, "process ") {
				line += " " + s.get("edda.kind")
			}
			text += line + "\n"
			below(s.id, indent+"\t")
		}
	}
	below("", "")
	return text
}

// settles checks that each call was settled as handled, and that the spans of relays link to each message.
func (d demo) settles(t *testing.T) {
	settled, relayed, calls := map[string]int{}, map[string]int{}, 0
	for _, s := range d.spans {
		for _, l := range s.links {
			switch s.get("messaging.operation.name") {
			case "settle":
				if l.fate != "handled" {
					t.Errorf("%s settles a call as %q", s.name, l.fate)
				}
				settled[l.trace+l.id]++
			case "relay":
				relayed[s.service+" "+s.name]++
			}
		}
	}
	for _, s := range d.spans {
		if !strings.HasPrefix(s.name, "process ") {
			continue
		}
		calls++
		if n := settled[s.trace+s.id]; n != 1 {
			t.Errorf("a call %s of %s is settled %d times", s.name, s.get("edda.kind"), n)
		}
	}
	if calls != len(settled) {
		t.Errorf("%d calls, and %d are settled", calls, len(settled))
	}
	for relay, least := range map[string]int{"orders relay payments": placing, "payments relay orders": placing,
		"orders relay order-events": placing - d.declined()} {
		if relayed[relay] < least {
			t.Errorf("%s links to %d messages, want %d", relay, relayed[relay], least)
		}
	}
}

func (d demo) declined() (n int) {
	for _, refused := range d.placed {
		if refused {
			n++
		}
	}
	return n
}

func (d demo) counts(t *testing.T) {
	declined := d.declined()
	paid := placing - declined
	for name, want := range map[string]int{
		"front sent order.place": placing, "orders sent card.charge": placing, "payments sent card.charged": paid,
		"payments sent card.declined": declined, "orders sent order.declined": declined,
		"orders consumed orders": 2 * placing, "orders consumed page": placing,
		"payments consumed payments": placing, "payments consumed shipping": paid,
	} {
		service, rest, _ := strings.Cut(name, " ")
		what, destination, _ := strings.Cut(rest, " ")
		p := d.point(t, service, "messaging.client."+what+".messages", destination)
		if p.count != want {
			t.Errorf("%s: %d messages, want %d", name, p.count, want)
		}
		if what != "consumed" {
			continue
		}
		if took := d.point(t, service, "messaging.process.duration", destination); took.count != want || took.sum <= 0 {
			t.Errorf("%s: %d durations of %v s together, want %d", name, took.count, took.sum, want)
		}
		passed := d.point(t, service, "messaging.client.operation.duration", destination)
		if passed.operation != "settle" || passed.count < 1 || passed.count > want || passed.sum <= 0 {
			t.Errorf("%s: %d transactions %s of %v s together, want 1 to %d", name, passed.count, passed.operation,
				passed.sum, want)
		}
	}
	relay := d.point(t, ordersProcess, "messaging.client.operation.duration", "payments")
	if relay.operation != "relay" || relay.count < 1 || relay.count > placing || relay.sum <= 0 {
		t.Errorf("a relay made %d passes %s of %v s together", relay.count, relay.operation, relay.sum)
	}
}

// point returns the point of a metric and a destination. A point of a failure is wrong.
func (d demo) point(t *testing.T, service, metric, destination string) (found point) {
	t.Helper()
	for _, p := range d.points {
		if p.service != service || p.metric != metric || p.destination != destination {
			continue
		}
		if p.failure != "" {
			t.Errorf("%s of %s in %s: %d failures %s", metric, destination, service, p.count, p.failure)
			continue
		}
		found = p
	}
	if found == (point{}) {
		t.Errorf("%s of %s in %s is not there", metric, destination, service)
	}
	return found
}
