package wire

import (
	"fmt"
	"testing"
)

func TestHintOfAKindWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	kinds := func(names ...string) map[string]bool {
		known := map[string]bool{}
		for _, name := range names {
			known[name] = true
		}
		return known
	}
	many := kinds()
	for n := range 12 {
		many[fmt.Sprintf("kind.%02d", n)] = true
	}
	some := kinds("order.place", "order.placed", "card.charge", "a")
	for _, c := range []struct {
		known      map[string]bool
		kind, want string
	}{
		{nil, "x", ""},
		{kinds(), "x", ""},
		{some, "order.plase", " (did you mean order.place or order.placed?)"},
		{some, "rder.placed", " (did you mean order.place or order.placed?)"},
		{some, "card.charges", " (did you mean card.charge?)"},
		{some, "cards.charged", " (did you mean card.charge?)"},
		{some, "card.chagre", " (did you mean card.charge?)"},
		{some, "cards.charging", " (an endpoint consumes a, card.charge, order.place, order.placed)"},
		{some, "b", " (an endpoint consumes a, card.charge, order.place, order.placed)"},
		{many, "other", " (an endpoint consumes kind.00, kind.01, kind.02, kind.03, kind.04, kind.05, kind.06, " +
			"kind.07, kind.08, kind.09, 2 more)"},
	} {
		if got := Hint(c.kind, c.known); got != c.want {
			t.Errorf("%s:%s, want%s", c.kind, got, c.want)
		}
	}
}
