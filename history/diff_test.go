package history_test

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/history"
)

func TestDiffSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"Total":1}`, `{"Total":1}`, ``},
		{`{"Total":1}`, `{ "Total": 1 }`, ``},
		{`{"Total":1,"Gone":null}`, `{"Total":2,"Paid":true}`, `-Gone, +Paid: true, Total: 1 → 2`},
		{`{"A":{"B":{"C":"x"},"D":1}}`, `{"A":{"B":{"C":"y"},"D":1}}`, `A.B.C: "x" → "y"`},
		{`{"N":[1]}`, `{"N":[1,2,3]}`, `N: +2 elements`},
		{`{"N":[1,2]}`, `{"N":[1]}`, `N: -1 element`},
		{`{"N":[1,2]}`, `{"N":[2,3,4]}`, `N: 2 → 3 elements`},
		{`{"N":[{"K":1},{"K":2}]}`, `{"N":[{"K":1},{"K":3}]}`, `N[1].K: 2 → 3`},
		{`[1]`, `[1,2]`, `+1 element`},
		{`1`, `"a"`, `1 → "a"`},
		{`{"A":{}}`, `{"A":[]}`, `A: {} → []`},
		{`{"Cents":12345678901234567890}`, `{"Cents":12345678901234567891}`,
			`Cents: 12345678901234567890 → 12345678901234567891`},
		{`{"A":1`, `{"A":2}`, `6 → 7 bytes`},
	} {
		if got := history.Diff([]byte(c.before), []byte(c.after)); got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
	if got := history.Diff(nil, []byte("{\n \"A\": 1}")); got != `{"A":1}` {
		t.Errorf("of a first state: %s", got)
	}
	long := history.Diff([]byte(`{"A":""}`), []byte(`{"A":"`+strings.Repeat("ä", 1000)+`"}`))
	if n := len([]rune(long)); n > 100 || !strings.HasSuffix(long, "…") {
		t.Errorf("a long value: %d characters, %s", n, long)
	}
	many := history.Diff([]byte(`[`+strings.Repeat("1,", 999)+`1]`), []byte(`[`+strings.Repeat("2,", 999)+`2]`))
	if n := strings.Count(many, "→"); n != 50 || !strings.HasSuffix(many, ", …") {
		t.Errorf("a thousand differences: %d are told", n)
	}
}
