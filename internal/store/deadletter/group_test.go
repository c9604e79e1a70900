package deadletter_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

func TestShapeLeavesOutWhatDiffers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"no stock":              "no stock",
		"order 17 has no stock": "order # has no stock",
		"order-7: no stock":     "order-#: no stock",
		"dial tcp 10.0.0.7:5432: connect: connection refused":        "dial tcp #: connect: connection refused",
		"dial tcp [::1]:5432: i/o timeout":                           "dial tcp [::#]:#: i/o timeout",
		"load saga order/0198c0de-0000-7000-8000-000000000001: gone": "load saga order/#: gone",
		`no article "red shoes, 42"`:                                 `no article #`,
		`key 'it\'s' is not 'unique`:                                 `key # is not 'unique`,
		"you can't do that in 'Zürich'":                              "you can't do that in #",
		"at 2026-11-21T10:00:00.000001Z it was late":                 "at # it was late",
		"deadbeef and cafebabe, but not added or facade":             "# and #, but not added or facade",
		"took 1, 2, 3, 4 of 5":                                       "took # of #",
		"a\n\tb   c":                                                 "a b c",
		"duplicate key value violates unique constraint \"u_7\" (SQLSTATE 23505)": "duplicate key value violates " +
			"unique constraint # (SQLSTATE #)",
		"json: cannot unmarshal `x` into Go struct field Place.Total of type int64": "json: cannot unmarshal # " +
			"into Go struct field Place.Total of type #",
		"\xff\xfe": "\uFFFD",
	} {
		if got := deadletter.Shape(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
}

// Tickets and scripts contain names of groups: a name must never change.
func TestGroupsHaveStableNames(t *testing.T) {
	t.Parallel()
	l := recoverability.Letter{Endpoint: "orders", Kind: "order.place", Reason: "permanent", Error: "no article 17"}
	if got := deadletter.GroupOf(&l); got != "373371abe806" {
		t.Errorf("the group is called %s", got)
	}
	same := l
	same.Error, same.Attempts, same.MessageID = "no article 18", 7, saga.ID{1}
	if deadletter.GroupOf(&same) != deadletter.GroupOf(&l) {
		t.Error("another article makes another group")
	}
	seen := map[string]bool{deadletter.GroupOf(&l): true}
	for _, other := range []recoverability.Letter{
		{Endpoint: "billing", Kind: l.Kind, Reason: l.Reason, Error: l.Error},
		{Endpoint: l.Endpoint, Kind: "order.cancel", Reason: l.Reason, Error: l.Error},
		{Endpoint: l.Endpoint, Kind: l.Kind, Reason: "conflicts", Error: l.Error},
		{Endpoint: l.Endpoint, Kind: l.Kind, Reason: l.Reason, Error: "no shelf 17"},
		{Endpoint: l.Endpoint + l.Kind, Reason: l.Reason, Error: l.Error},
	} {
		name := deadletter.GroupOf(&other)
		if seen[name] || len(name) != 12 {
			t.Errorf("%+v is in group %s", other, name)
		}
		seen[name] = true
	}
}

func FuzzShape(f *testing.F) {
	for _, text := range []string{"order 17", `a "b' c`, "'", "\x00\xff", "####", "a'b'c", strings.Repeat("1 ", 3000),
		"'\\", "日本 7日"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := deadletter.Shape(text)
		if !utf8.ValidString(got) || len(got) > 3*2048 || strings.ContainsAny(got, "0123456789\n\t") {
			t.Errorf("%q has the shape %q", text, got)
		}
	})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	var letters []recoverability.Letter
	for n := range 40 {
		letters = append(letters, recoverability.Letter{
			MessageID: saga.ID{byte(n + 1)}, Endpoint: []string{"orders", "stock"}[n%2],
			Kind: []string{"a", "b"}[n/2%2], Reason: "permanent",
			Error: []string{"no article ", "shelf is full: "}[n/4%2] + strings.Repeat("7", n+1),
		})
	}
	write(t, pool, store, letters...)
	groups, next, err := store.Groups(t.Context(), pool, recoverability.GroupFilter{})
	if err != nil || len(groups) != 8 || next != "" {
		t.Fatalf("%d groups, next %q, %v: %+v", len(groups), next, err, groups)
	}
	for _, g := range groups {
		members := list(t, pool, store, recoverability.LetterFilter{Group: g.Name, Limit: 200})
		last := members[len(members)-1]
		if int(g.Count) != len(members) || g.Count != 5 || g.Capped || g.Example != last.Number ||
			g.Error != last.Error || !g.Last.Equal(last.Died) || !g.First.Equal(members[0].Died) {
			t.Errorf("%+v has %d members, the last %+v", g, len(members), last)
		}
		for _, l := range members {
			if l.Endpoint != g.Endpoint || l.Kind != g.Kind || l.Group != g.Name ||
				deadletter.Shape(l.Error) != deadletter.Shape(g.Error) {
				t.Errorf("%+v is not of %+v", l, g)
			}
		}
	}
	few, _, err := store.Groups(t.Context(), pool, recoverability.GroupFilter{CountTo: 3, Limit: 1})
	if err != nil || len(few) != 1 || few[0].Count != 3 || !few[0].Capped || few[0].Example != groups[0].Example {
		t.Errorf("counted to three: %+v, %v", few, err)
	}
	page, next, err := store.Groups(t.Context(), pool, recoverability.GroupFilter{Limit: 5})
	if err != nil || len(page) != 5 || next != page[4].Name {
		t.Errorf("%d groups, next %q, %v", len(page), next, err)
	}
	rest, _, err := store.Groups(t.Context(), pool, recoverability.GroupFilter{Limit: 5, After: next})
	if err != nil || len(rest) != 3 {
		t.Errorf("%d groups are left, %v", len(rest), err)
	}
	if of, _, err := store.Groups(t.Context(), pool,
		recoverability.GroupFilter{Endpoint: "stock", Kind: "b"}); err != nil || len(of) != 2 {
		t.Errorf("%+v, %v", of, err)
	}
}

func TestFiltersByGroupAndTime(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	write(t, pool, store, recoverability.Letter{MessageID: saga.ID{1}, Error: "a"},
		recoverability.Letter{MessageID: saga.ID{2}, Error: "a"},
		recoverability.Letter{MessageID: saga.ID{1}, Error: "b"})
	all := list(t, pool, store, recoverability.LetterFilter{})
	cases := []struct {
		filter recoverability.LetterFilter
		want   int
	}{
		{recoverability.LetterFilter{Group: all[0].Group}, 2},
		{recoverability.LetterFilter{Group: all[0].Group, MessageID: saga.ID{1}}, 1},
		{recoverability.LetterFilter{Group: all[0].Group, Endpoint: "x"}, 0},
		{recoverability.LetterFilter{Group: "000000000000"}, 0},
		{recoverability.LetterFilter{DiedFrom: all[1].Died}, 2},
		{recoverability.LetterFilter{DiedBefore: all[2].Died}, 2},
		{recoverability.LetterFilter{DiedFrom: all[1].Died, DiedBefore: all[2].Died, MessageID: saga.ID{2}}, 1},
		{recoverability.LetterFilter{DiedFrom: time.Now().Add(time.Hour)}, 0},
	}
	for _, c := range cases {
		n, err := store.Count(t.Context(), pool, c.filter)
		if got := list(t, pool, store, c.filter); len(got) != c.want || int(n) != c.want || err != nil {
			t.Errorf("%+v: %d dead letters, counted %d, %v; want %d", c.filter, len(got), n, err, c.want)
		}
	}
	for _, wrong := range []recoverability.LetterFilter{{DiedFrom: all[1].Died, DiedBefore: all[1].Died},
		{DiedFrom: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		if _, err := store.List(t.Context(), pool, wrong); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}
