package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// badInput is one row of the table: an input that is wrong, and the result that its sender gets. Each is refused before
// any SQL, or stored as it is. A stored message that cannot be handled becomes a dead letter on its first attempt, with
// its bytes, and its neighbours are handled.
type badInput struct {
	id    string // the row in the catalogue of bad input; its name is the input
	input string
	do    func(c *inputs) []result
	want  want
}

// result is the result of one input that was given in one way.
type result struct {
	way  string // how it was given: Send, SendTx, handler, …
	fate string // refused, stored, handled, dead after 1, …
	err  error
	text string // of the error, as it is returned or stored
}

// want is the result that every way of a row must have. The error contains says, and never the secret.
type want struct {
	fate string
	is   error
	says []string
}

// Every value that no error may repeat contains one of these.
const (
	secret       = "s3cr3t"
	secretNumber = "4111222233334444" // longer than every part of an id
)

func refused(is error, says ...string) want { return want{"refused", is, says} }
func dead(is error, says ...string) want    { return want{"dead after 1", is, says} }
func fate(name string, says ...string) want { return want{fate: name, says: says} }

// Rows of the catalogue without a case here: B17's exit code is that of a program; the dashboard's part of B5 and B7,
// and B49 to B52, belong to the dashboard and the command line; B40 to B42 to the scheduler; B44 to the leases; B45 to
// B48 to the pool and the migrations; B53 to TestWhatAHandlerMayReturn; B54 requires that nothing happens.
func TestBadInput(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newInputs(w)
	for n, row := range slices.Concat(sentInputs, arrivedInputs, instanceInputs, timeInputs, againInputs,
		optionInputs) {
		t.Run(row.input, func(t *testing.T) {
			c := *g
			c.name = fmt.Sprintf("in-%d", n)
			defer func(outer *testing.T) { w.t = outer }(w.t)
			w.t = t
			results := row.do(&c)
			if len(results) == 0 {
				t.Error("nothing was tried")
			}
			for _, r := range results {
				for _, wrong := range row.want.compare(r) {
					t.Errorf("%s: %s\n  fate %s: %s", r.way, wrong, r.fate, shortened(r.text))
				}
			}
		})
	}
}

func (w want) compare(r result) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if r.fate != w.fate {
		say("want it %s", w.fate)
	}
	if w.is != nil && !errors.Is(r.err, w.is) {
		say("the error is not %q", w.is)
	}
	var permanent *saga.PermanentError
	if w.fate == "refused" && w.is == nil && !errors.As(r.err, &permanent) {
		say("the error is a %T and not permanent", r.err)
	}
	for _, text := range w.says {
		if !strings.Contains(r.text, text) {
			say("%q is not in the text", text)
		}
	}
	if strings.Contains(r.text, secret) || strings.Contains(r.text, secretNumber) {
		say("the text repeats the value")
	}
	if i := strings.IndexFunc(r.text, func(r rune) bool {
		return r == unicode.ReplacementChar ||
			!unicode.IsPrint(r)
	}); i >= 0 {
		say("the text has an unprintable character at byte %d: %q", i, shortened(r.text))
	}
	if len(r.text) > 1000 {
		say("the text has %d bytes", len(r.text))
	}
	return wrong
}

func shortened(s string) string { return s[:min(len(s), 400)] }
