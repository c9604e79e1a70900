package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestTheCheckerSeesEachFault(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l, err := lab.Open(t.Context(), lab.Settings{Name: "border", Out: &out}, pgdev.Options{}, sql)
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{Lab: l, there: &side{pool: l.Pool}}
	defer g.Close()
	a0, a1, b0 := one{"a", 0}, one{"a", 1}, one{"b", 0}
	all := []one{a0, a1, b0}
	for name, c := range map[string]struct {
		entered, handled []one
		want             string // the rule, "" for none
	}{
		"all well":              {[]one{b0, a0, a1}, []one{a1, a0, b0}, ""},
		"one is lost":           {[]one{a0, b0}, []one{a0, b0}, "lost=1 doubled=0 disorder=0 invented=0"},
		"one is handled twice":  {all, []one{a0, a1, a1, b0}, "lost=0 doubled=1 disorder=0 invented=0"},
		"one entered twice":     {[]one{a0, a1, a0, b0}, all, "lost=0 doubled=1 disorder=0 invented=0"},
		"the later comes first": {[]one{a1, a0, b0}, all, "lost=0 doubled=0 disorder=1 invented=0"},
		"nobody told it":        {all, append([]one{{"c", 7}}, all...), "lost=0 doubled=0 disorder=0 invented=1"},
	} {
		out.Reset()
		l.Forget()
		fill := func(table string, these []one) {
			if err := l.Exec(t.Context(), "DELETE FROM "+table); err != nil {
				t.Fatal(err)
			}
			for _, m := range these {
				err := l.Exec(t.Context(), "INSERT INTO "+table+" (key, n) VALUES ($1, $2)", m.Key, m.N)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		fill("chaos.told", all)
		fill("chaos.entered", c.entered)
		fill("chaos.effect", c.handled)
		err := g.check(context.WithoutCancel(t.Context()), "test")
		if errors.Is(err, lab.ErrBroken) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, out.String(), c.want)
		}
	}
}
