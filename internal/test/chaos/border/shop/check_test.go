package shop

import "testing"

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
		var v Verdict
		v.add("order-1", test.story)
		if v.String() != test.want {
			t.Errorf("%s: %s, want %s", name, v, test.want)
		}
	}
}
