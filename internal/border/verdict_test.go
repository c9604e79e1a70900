package main

import "testing"

func TestTheCheckerSeesEachFault(t *testing.T) {
	t.Parallel()
	a0, a1, b0 := one{"a", 0}, one{"a", 1}, one{"b", 0}
	all := []one{a0, a1, b0}
	for name, c := range map[string]struct {
		entered, handled []one
		want             string
	}{
		"all well": {[]one{b0, a0, a1}, []one{a1, a0, b0},
			"lost=0 double=0 disorder=0 never_told=0 dead=0"},
		"one is lost":           {[]one{a0, b0}, []one{a0, b0}, "lost=1 double=0 disorder=0 never_told=0 dead=0"},
		"one is handled twice":  {all, []one{a0, a1, a1, b0}, "lost=0 double=1 disorder=0 never_told=0 dead=0"},
		"one entered twice":     {[]one{a0, a1, a0, b0}, all, "lost=0 double=1 disorder=0 never_told=0 dead=0"},
		"the later comes first": {[]one{a1, a0, b0}, all, "lost=0 double=0 disorder=1 never_told=0 dead=0"},
		"nobody told it": {all, append([]one{{"c", 7}}, all...),
			"lost=0 double=0 disorder=0 never_told=1 dead=0"},
	} {
		if got := compare(all, c.entered, c.handled); got.String() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, got, c.want)
		}
	}
}
