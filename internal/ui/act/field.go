package act

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/ui/view"
)

// kind is the type of a field's value, and how the field is drawn.
type kind string

const (
	target  kind = "target"  // the object of the action: a part of the address, or hidden
	hidden  kind = "hidden"  // a value that the page supplies, such as a version
	line    kind = "line"    // a text of one line
	area    kind = "area"    // a text of many lines
	number  kind = "number"  // a number
	choice  kind = "choice"  // a word from a list
	tick    kind = "tick"    // yes or no
	coming  kind = "coming"  // a time, or the duration until then
	past    kind = "past"    // a time, or the duration since then
	lasting kind = "lasting" // a duration
)

// field is one input of a form.
type field struct {
	name, label string
	kind        kind
	must        bool
	least, most int64 // of a number; for a text most is in bytes
	choices     []string
	hint        string
	example     string // a placeholder in the command for the value
}

// Limits of texts, in bytes.
const (
	mostName   = 2000
	mostReason = 8 << 10
	mostText   = 1 << 20 // a body, a state, a patch
)

func of(name string) field {
	return field{name: name, label: name, kind: target, must: true, most: mostName}
}

// which returns a target that may be left out.
func which(name string) field { return field{name: name, label: name, kind: target, most: mostName} }

var (
	why = field{name: "reason", label: "Reason", kind: line, most: mostReason,
		hint: "for the audit, and for your colleagues"}
	whyMust = field{name: "reason", label: "Reason", kind: line, must: true, most: mostReason, example: "why",
		hint: "for the audit, and for your colleagues"}
	rate = field{name: "rate", label: "Letters a second", kind: number, most: 10_000,
		hint: "0 or empty: no limit"}
	to = field{name: "to", label: "To a different endpoint", kind: line, most: mostName,
		hint: "empty: the endpoint of each dead letter"}
	seen = field{name: "version", label: "Version", kind: hidden, most: 30}
)

// Input holds the submitted values of a form, after all of them have passed the checks.
type Input struct {
	May    func(Right) bool
	Bodies bool // bodies and states may be shown

	action *Action
	values map[string]string
}

func (in Input) text(name string) string { return in.values[name] }
func (in Input) ticked(name string) bool { return in.values[name] != "" }

// number returns 0 for a field that was left out.
func (in Input) number(name string) int64 {
	n, _ := strconv.ParseInt(in.values[name], 10, 64)
	return n
}

// lasting returns 0 for a field that was left out.
func (in Input) lasting(name string) time.Duration {
	d, _ := time.ParseDuration(in.values[name])
	return d
}

// moment returns the zero time for a field that was left out. A duration counts from now, in the direction of sign.
func (in Input) moment(name string, now time.Time, sign time.Duration) time.Time {
	text := in.values[name]
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(sign * d)
	}
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// Reason returns the reason that the actor gave.
func (in Input) Reason() string { return in.values["reason"] }

// Read reads a form. path returns a part of the address. The error is a Refusal that names each field that is wrong,
// with its limit.
func (a *Action) Read(path func(string) string, form url.Values) (Input, error) {
	in := Input{action: a, values: map[string]string{}}
	var wrong []string
	for _, f := range a.allFields() {
		text := form.Get(f.name)
		if a.inPath(f) {
			text = path(f.name)
		}
		text = strings.ReplaceAll(text, "\r\n", "\n") // browsers send line ends in this form
		if f.kind != area && f.kind != target {
			text = strings.TrimSpace(text)
		}
		if fault := f.check(text); fault != "" {
			wrong = append(wrong, f.label+": "+fault+".")
		}
		in.values[f.name] = text
	}
	if wrong != nil {
		return in, in.refuse(http.StatusBadRequest, strings.Join(wrong, "\n"))
	}
	return in, nil
}

// allFields returns the fields of the form, and of its confirmation.
func (a *Action) allFields() []field {
	if a.check == nil {
		return a.fields
	}
	return append(slices.Clone(a.fields), agreement...)
}

func (a *Action) inPath(f field) bool { return strings.Contains(a.Pattern, "{"+f.name+"}") }

// check returns a description of the fault of a text, or "".
func (f field) check(text string) string {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "it contains bytes that are not text"
	case text == "" && f.must:
		return "this field is required"
	case text == "":
		return ""
	}
	shown := strconv.Quote(view.Escape(view.Shortened(text, 60)))
	switch f.kind {
	case number:
		return f.checkNumber(text, shown)
	case choice:
		if !slices.Contains(f.choices, text) {
			return "choose one of " + strings.Join(f.choices, ", ") + ", not " + shown
		}
	case coming, past:
		_, wrong := time.ParseDuration(text)
		if _, err := time.Parse(time.RFC3339, text); err != nil && (wrong != nil || strings.HasPrefix(text, "-")) {
			return "enter a time such as 2026-12-01T10:00:00Z, or a duration such as 90m, not " + shown
		}
	case lasting:
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return "enter a duration such as 10m, not " + shown
		}
	default:
		if int64(len(text)) > f.most {
			return fmt.Sprintf("it has %d bytes, the limit is %d", len(text), f.most)
		}
	}
	return ""
}

func (f field) checkNumber(text, shown string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < f.least || n > f.most {
		return fmt.Sprintf("enter a number from %d to %d, not %s", f.least, f.most, shown)
	}
	return ""
}

// checkJSON refuses a text that is no JSON.
func (in Input) checkJSON(name string) error {
	if json.Valid([]byte(in.text(name))) {
		return nil
	}
	at := slices.IndexFunc(in.action.fields, func(f field) bool { return f.name == name })
	return in.refuse(http.StatusBadRequest, in.action.fields[at].label+": this is not valid JSON.")
}
