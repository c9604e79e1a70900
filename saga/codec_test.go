package saga_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/edda-go/edda/saga"
)

type note struct {
	Text  string
	Any   any               `json:",omitempty"`
	Map   map[string]string `json:",omitempty"`
	Own   *own              `json:",omitempty"`
	Raw   json.RawMessage   `json:",omitempty"`
	Bytes []byte            `json:",omitempty"`
	F     float64           `json:",omitempty"`
	Next  *note             `json:",omitempty"`
}

func (note) Kind() string { return "note" }

// own encodes itself with encoding/json, as many types do.
type own struct{ text string }

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(o.text) }

const bad = "caf\xe9"

func nested(depth int) *note {
	var n *note
	for range depth {
		n = &note{Next: n}
	}
	return n
}

func TestEncodeRefusesWhatWouldChangeSilently(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		m    note
		want string // "" is success
	}{
		"plain":                  {note{Text: "café"}, ""},
		"bad text":               {note{Text: bad}, "UTF-8"},
		"bad text in any":        {note{Any: []any{map[string]any{"a": bad}}}, "UTF-8"},
		"bad map key":            {note{Map: map[string]string{bad: ""}}, "UTF-8"},
		"bad text in its own":    {note{Own: &own{text: bad}}, "UTF-8"},
		"bad raw":                {note{Raw: json.RawMessage(`"` + bad + `"`)}, "UTF-8"},
		"honest U+FFFD":          {note{Text: "\uFFFD"}, ""},
		"honest backslash ufffd": {note{Text: `\ufffd`}, ""},
		"escaped U+FFFD in raw":  {note{Raw: json.RawMessage(`"\ufffd"`)}, ""},
		"bytes are not text":     {note{Bytes: []byte(bad), Text: "\uFFFD"}, ""},
		"NaN":                    {note{F: math.NaN()}, "NaN"},
		"infinity":               {note{F: math.Inf(1)}, "Inf"},
		"depth 1,000":            {*nested(1000), ""},
		"depth 1,001":            {*nested(1001), "nested deeper than 1000"},
		"brackets in text":       {note{Text: strings.Repeat(`"[{`, 5000)}, ""},
		"cannot be encoded":      {note{Any: make(chan int)}, "unsupported type"},
	}
	for name, test := range tests {
		b, err := saga.JSON.Encode(test.m)
		switch {
		case test.want == "" && (err != nil || !json.Valid(b)):
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		into any
		want string
	}{
		"object":                 {`{"Text":"a","Unknown":1}`, new(note), ""},
		"null":                   {`null`, new(note), ""},
		"empty":                  {``, new(note), "unexpected end"},
		"empty without fields":   {``, new(overdue), ""},
		"a string for an object": {`""`, new(note), "cannot unmarshal"},
		"space":                  {`  `, new(note), "unexpected end"},
		"two values":             {`{}{}`, new(note), "after top-level value"},
		"bad text":               {`{"Text":"` + bad + `"}`, new(note), "not UTF-8"},
		"too deep":               {strings.Repeat("[", 1500) + strings.Repeat("]", 1500), new(any), "nested deeper"},
		"deep and unclosed":      {strings.Repeat("[", 5000), new(any), "nested deeper"},
		"text full of brackets":  {`"` + strings.Repeat(`[\"`, 3000) + `"`, new(any), ""},
	}
	for name, test := range tests {
		err := saga.JSON.Decode([]byte(test.body), test.into)
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestRawTravelsAsItIs(t *testing.T) {
	t.Parallel()
	body := []byte("not json \xff")
	b, err := saga.JSON.Encode(saga.Raw{Name: "x", Body: body})
	if err != nil || string(b) != string(body) {
		t.Fatalf("%q, %v", b, err)
	}
	body[0] = 'X'
	if b[0] == 'X' {
		t.Error("the body is the sender's own memory")
	}
}

// FuzzDecode: no input panics, and a decoded value that is encoded and decoded again stays equal.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"Text":"a"}`, ``, `null`, `{"Next":{"Next":{}}}`, `{"Any":[1,"\ud800"]}`,
		"{\"Text\":\"\xff\"}", strings.Repeat("[", 2500)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second note
		if saga.JSON.Decode(b, &first) != nil {
			return
		}
		out, err := saga.JSON.Encode(first)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", b, err)
		}
		if err := saga.JSON.Decode(out, &second); err != nil {
			t.Fatalf("%q was written as %q and cannot be read: %v", b, out, err)
		}
		again, err := saga.JSON.Encode(second)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q became %q (%v)", out, again, err)
		}
	})
}

// FuzzEncodeText: text is refused exactly if it is not UTF-8; other text arrives unchanged.
func FuzzEncodeText(f *testing.F) {
	for _, s := range []string{"a", bad, "\uFFFD", `\ufffd`, "\\\xff", "\u2028<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := saga.JSON.Encode(note{Text: s, Map: map[string]string{"k": s}})
		if valid := strings.ToValidUTF8(s, "") == s; valid != (err == nil) {
			t.Fatalf("%q: valid %v, error %v", s, valid, err)
		}
		var got note
		if err == nil && (saga.JSON.Decode(b, &got) != nil || got.Text != s || got.Map["k"] != s) {
			t.Fatalf("%q came back as %q", s, got.Text)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0190b5a0-7b7c-7cc2-8d5e-0123456789ab", "0190B5A0-7B7C-7CC2-8D5E-0123456789AB",
		"{0190b5a0-7b7c-7cc2-8d5e-0123456789ab}", strings.Repeat("-", 36), "0190b5a0-7b7c-7cc2-8d5e-0123456789aé"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := saga.ParseID(s)
		if err != nil {
			return
		}
		if got := id.String(); got != strings.ToLower(s) {
			t.Fatalf("%q was read as %s", s, got)
		}
		var back saga.ID
		if err := back.UnmarshalText([]byte(id.String())); err != nil || back != id || id.Compare(back) != 0 {
			t.Fatalf("%s came back as %s, %v", id, back, err)
		}
	})
}

// FuzzOpen: for any content of the state column, Open and Step return an outcome or an error and do not panic.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{`{"Total":1,"Seen":2}`, `{"Total": 1}`, `{}`, `{"`, `{"a":`, `{"a\"":1}`, "", "null",
		"[]", " {}"} {
		f.Add([]byte(s), 1)
	}
	d := orders(saga.Options{})
	f.Fuzz(func(t *testing.T, state []byte, version int) {
		s, err := d.Open(saga.Instance{ID: numbered(1), Key: "7", State: state, StateVersion: version})
		if err != nil {
			return
		}
		in := deliver(stocked{Left: 3}, func(i *saga.Info) { i.Instance = numbered(1) })
		if out := step(t, s, d, in); out.Err != nil {
			t.Fatalf("%q: %v", state, out.Err)
		}
		s.Changed()
	})
}
