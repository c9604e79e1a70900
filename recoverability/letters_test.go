package recoverability_test

import (
	"testing"

	"github.com/edda-go/edda/recoverability"
	"github.com/google/go-cmp/cmp"
)

func TestHeadersOfALetter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][]recoverability.Header{
		`{}`:                            {},
		`{"b":"2","edda-from":"x"}`:     {{Name: "b", Value: "2"}, {Name: "edda-from", Value: "x"}},
		`{"z":"\u001b[2J","n":{"m":1}}`: {{Name: "n", Value: `{"m":1}`}, {Name: "z", Value: "\x1b[2J"}},
	} {
		l := recoverability.Letter{Header: []byte(header)}
		got, err := l.Headers()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", header, err, diff)
		}
	}
	for _, header := range []string{``, `[]`, `{"a":`, `"text"`} {
		l := recoverability.Letter{Number: 7, Header: []byte(header)}
		if got, err := l.Headers(); err == nil {
			t.Errorf("%q is no header, and gave %v", header, got)
		}
	}
}
