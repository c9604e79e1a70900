package page

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

func TestAddressesOfInstances(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"order", "2026-0007", "sagas/order/2026-0007"}, {"order", "a/b", "sagas/order/a%2Fb"},
		{"order", "a?b#c", "sagas/order/a%3Fb%23c"}, {"order", "..", "instance?saga=order&key=.."},
		{"order", ".", "instance?saga=order&key=."}, {"order", "", "instance?saga=order&key="},
		{"order", "x.json", "instance?saga=order&key=x.json"}, {"order", "a b&c", "sagas/order/a%20b&c"},
	} {
		if got := Instance(c[0], c[1]); got != c[2] {
			t.Errorf("%q is at %s, want %s", c[1], got, c[2])
		}
	}
	id := saga.ID{1}
	for key, want := range map[string]string{"7": "sagas/order/7?life=", "..": "instance?saga=order&key=..&life="} {
		if got := LifeOf("order", key, id); got != want+id.String() {
			t.Errorf("a life of %q is at %s", key, got)
		}
	}
}

func TestAFirstStateIsOneLine(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{"Cents":1990,"Paid":false,"Notes":null,"To":"","N":0,"L":[],"O":{}}`: "Cents: 1990", `{}`: "{}",
		`{"B":{"a":1},"A":[1,2]}`: `A: [1,2], B: {"a":1}`, `[1,2]`: "[1,2]",
		`{"Long":"` + strings.Repeat("x", 100) + `"}`: `Long: "` + strings.Repeat("x", 58) + "…",
		`{"N":12345678901234567890}`:                  "N: 12345678901234567890",
	} {
		if got := filled([]byte(state)); got != want {
			t.Errorf("%s is %q, want %q", state, got, want)
		}
	}
}

func TestNamesOfFieldsThatChanged(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"A":1,"B":2,"C":3}`, `{"A":1,"B":3,"D":4}`, "B, C, D"}, {`{"A":1}`, `{"A":1}`, ""}, {"[1]", "[2]", ""},
	} {
		if got := fieldsOf([]byte(c[0]), []byte(c[1])); got != c[2] {
			t.Errorf("%s to %s is %q, want %q", c[0], c[1], got, c[2])
		}
	}
	if got := fieldsOf(nil, []byte(`{"A":1}`)); got != "A" {
		t.Errorf("a first state is %q", got)
	}
}

func TestIDOfATrace(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for parent, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01": id, "": "", "00-" + id: "",
		"00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01":   "",
		"00-" + id[:30] + `"><-00f067aa0ba902b7-01-and-more-…`: "",
	} {
		headers := []recoverability.Header{{Name: "other", Value: "x"}, {Name: "traceparent", Value: parent}}
		if got := traceOf(headers); got != want {
			t.Errorf("%q is %q", parent, got)
		}
	}
}

func TestManyMessagesOfAKindAreOneLine(t *testing.T) {
	t.Parallel()
	all := []outgoing{{Kind: "a", State: "handled"}}
	for n := range 5 {
		state := "handled"
		if n == 2 {
			state = "dead"
		}
		all = append(all, outgoing{Kind: "b", To: "x", State: state})
	}
	got := folded(all)
	if len(got) != 2 || got[1].Count != 5 || len(got[1].Parts) != 2 || got[1].Parts[0] != (share{"handled", 4}) {
		t.Errorf("%+v", got)
	}
	if few := folded(all[:4]); len(few) != 4 {
		t.Errorf("three of a kind are folded: %+v", few)
	}
}

func TestRedactAndSecretsTakeAway(t *testing.T) {
	t.Parallel()
	type state struct {
		Card string `edda:"secret"`
		N    int
	}
	d := saga.Define("order", saga.Options{}, saga.StartedBy(func(m start) string { return m.Key },
		func(*state, *saga.Context, start) error { return nil }))
	s := &Source{Redact: func(kind string, body json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(body), "Jane", kind))
	}}
	if err := s.Define(d); err != nil {
		t.Fatal(err)
	}
	bodies := Ask{Bodies: true}
	for _, c := range [][2]string{
		{string(patchOf(s, bodies, "order.start", []byte(`{"Pin":"1","Key":"Jane"}`))),
			`{"Key":"order.start","Pin":"[secret]"}`},
		{string(patchOf(s, bodies, "", []byte(`{"Pin":"1","N":2}`))), `{"N":2,"Pin":"[secret]"}`}, // no kind
		{string(patchOf(s, bodies, "other", []byte(`{"Pin":"1"}`))), `{"Pin":"1"}`},
		{string(patchOf(s, Ask{}, "other", []byte(`{"N":1}`))), ""},
		{string(s.State("order", []byte(`{"Card":"4111","N":1}`))), `{"Card":"[secret]","N":1}`},
		{string(s.State("order", []byte("not JSON 4111"))), ""}, {string(s.State("other", []byte(`"4111"`))), `"4111"`},
		{string(s.Body("order.start", []byte(`{"Pin":"1","Key":"Jane"}`))), `{"Key":"order.start","Pin":"[secret]"}`},
		{string(s.Body("other", []byte(`"Jane"`))), `"other"`}, {string(s.Body("other", []byte("Jane"))), "Jane"},
	} {
		if c[0] != c[1] {
			t.Errorf("it is %s, want %s", c[0], c[1])
		}
	}
}

type start struct {
	Key string
	Pin string `edda:"secret"`
}

func (start) Kind() string { return "order.start" }

func TestNextTimeoutIsTheEarliest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var pending []saga.Pending
	for _, hours := range []int{2, 1, 3} {
		pending = append(pending, saga.Pending{Due: now.Add(time.Duration(hours) * time.Hour)})
	}
	rows := instanceRows([]persistence.Listed{{Instance: saga.Instance{Pending: pending}}})
	if got := rows[0].Next; !got.Equal(pending[1].Due) || rows[0].Timeouts != 3 {
		t.Errorf("of %d timeouts the next is in %v, want in an hour", rows[0].Timeouts, got.Sub(now))
	}
}
