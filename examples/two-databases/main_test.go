package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the nodes of the broker, too.
func TestMain(m *testing.M) {
	cluster.RunNode()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}

func TestEveryOrderIsPaidOnceInTheOtherDatabase(t *testing.T) {
	var out bytes.Buffer
	if err := look(t.Context(), settings{seconds: 3, rate: 40, seed: 1}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	said := out.String()
	if !regexp.MustCompile(`orders=[1-9]\d* paid=[1-9]\d* declined=[1-9]\d* lost=0 double=0 wrong=0`).MatchString(
		said) {
		t.Errorf("the sum is not told, or not as it should be:\n%s", said)
	}
	for _, step := range []string{"orders    placed", "orders    card.charge is given to the broker, topic payments",
		"payments  card.charge is handled by endpoint payments", "orders    order.paid is handled by endpoint page",
		"payments  order.paid is handled by endpoint shipping"} {
		if !strings.Contains(said, step) {
			t.Errorf("it was not told that %q:\n%s", step, said)
		}
	}
}

func TestTheCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	paid := story{placed: true, card: "41", cents: 500, ends: []string{"paid"}, payments: []payment{{500, false}},
		shipments: 1}
	with := func(change func(*story)) story {
		s := paid
		s.payments = append([]payment(nil), paid.payments...)
		change(&s)
		return s
	}
	for name, test := range map[string]struct {
		story story
		want  string
	}{
		"paid": {paid, "orders=1 paid=1 declined=0 lost=0 double=0 wrong=0"},
		"declined": {story{placed: true, card: "47", cents: 500, ends: []string{"declined"},
			payments: []payment{{500, true}}}, "orders=1 paid=0 declined=1 lost=0 double=0 wrong=0"},
		"no payment": {with(func(s *story) { s.payments = nil }), "orders=1 paid=0 declined=0 lost=1 " +
			"double=0 wrong=0"},
		"no end": {with(func(s *story) { s.ends = nil }), "orders=1 paid=1 declined=0 lost=1 " +
			"double=0 wrong=0"},
		"not shipped": {with(func(s *story) { s.shipments = 0 }), "orders=1 paid=1 declined=0 lost=1 " +
			"double=0 wrong=0"},
		"paid twice": {with(func(s *story) { s.payments = append(s.payments, s.payments[0]) }),
			"orders=1 paid=1 declined=0 lost=0 double=1 wrong=0"},
		"told twice": {with(func(s *story) { s.ends = []string{"paid", "paid"} }),
			"orders=1 paid=1 declined=0 lost=0 double=1 wrong=0"},
		"shipped twice": {with(func(s *story) { s.shipments = 2 }), "orders=1 paid=1 declined=0 lost=0 " +
			"double=1 wrong=0"},
		"another sum": {with(func(s *story) { s.payments[0].cents = 499 }), "orders=1 paid=1 declined=0 " +
			"lost=0 double=0 wrong=1"},
		"a blocked card paid": {with(func(s *story) { s.card = "47" }), "orders=1 paid=1 declined=0 lost=0 " +
			"double=0 wrong=1"},
		"the buyer was misled": {with(func(s *story) { s.ends = []string{"declined"} }),
			"orders=1 paid=1 declined=0 lost=0 double=0 wrong=1"},
		"nobody had placed it": {with(func(s *story) { s.placed = false }), "orders=0 paid=0 declined=0 lost=0 " +
			"double=0 wrong=1"},
		"declined, and shipped": {story{placed: true, card: "47", ends: []string{"declined"},
			payments: []payment{{0, true}}, shipments: 1}, "orders=1 paid=0 declined=1 lost=0 double=0 wrong=1"},
	} {
		var v verdict
		v.add("order-1", test.story)
		if v.String() != test.want {
			t.Errorf("%s: %s, want %s", name, v, test.want)
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-seconds", "0"}, {"-rate", "2000"}, {"-rate", "-1"}, {"more"}, {"-unknown"}} {
		var complaints bytes.Buffer
		if code := start(args, t.Output(), &complaints); code != 2 || complaints.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, complaints.String())
		}
	}
}
