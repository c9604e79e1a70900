package view

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/operate/vitals"
)

func TestVitalsAreLines(t *testing.T) {
	t.Parallel()
	v := Vitals(&vitals.Report{Vitals: []vitals.Vital{
		{Name: vitals.Snapshot, Subject: "session 7", Level: vitals.Bad,
			Value:     vitals.Quantity{Number: 2460, Unit: "s"},
			Threshold: vitals.Quantity{Number: 600, Unit: "s"}, Sentence: "Session 7 is old.", Do: "End it."},
		{Name: vitals.Setting, Sentence: "All is well."},
		{Name: vitals.Connections, Value: vitals.Quantity{Number: 42, Unit: "%"},
			Threshold: vitals.Quantity{Number: 80, Unit: "%"}, Sentence: "Few are in use."},
	}, Holders: []vitals.Holder{{Kind: "session", Name: "7", Query: "SELECT \x1b[2J\n'\u202e'"},
		{Kind: "session", Name: "8", Query: "SELECT 8"}}})
	const want = `bad   snapshot     Session 7 is old. [41m0s, bad from 10m0s]
      do: End it.
      query: "SELECT \x1b[2J\n'\u202e'"
ok    setting      All is well.
ok    connections  Few are in use. [42 %, warn from 80 %]
`
	var got strings.Builder
	for _, p := range v.Parts {
		got.WriteString(string(p.(Line)) + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	text, err := v.JSON.Text()
	if err != nil || !strings.Contains(text, `"level": "bad"`) || !strings.Contains(text, `"query": "SELECT 8"`) {
		t.Errorf("%s, %v", text, err)
	}
}
