package act

import (
	"strconv"
	"strings"
)

// Preview is shown for confirmation before an action runs.
type Preview struct {
	Says     []string  // the effects of the action
	Final    string    // why it cannot be undone, or ""
	Count    int64     // number of affected things
	Examples []Example // the first of them

	keep map[string]string // fields that hold the state at the time of the preview
	form Form
}

// Example is one thing that an action affects.
type Example struct {
	Text          string
	Before, After string // bodies or states, or ""
	Error         string // why it stays unchanged
}

// mustType is the number above which the actor has to type it.
const mustType = 1000

// typed is the field for the confirmation.
var typed = field{name: "confirm", label: "Confirmation", kind: line, most: 30}

// agreement are the fields of a confirmation.
var agreement = []field{
	{name: "count", label: "Number", kind: number, most: 1 << 40}, typed,
}

// Form returns the form that runs the action, with the number and all values submitted before.
func (p *Preview) Form() Form { return p.form }

// Type reports whether the actor has to type the number.
func (p *Preview) Type() bool { return p.Count > mustType }

// agreed reports whether in confirms the preview: with a number that is not smaller, and typed if it is large.
func (p *Preview) agreed(in Input) bool {
	count := in.text("count")
	n, err := strconv.ParseInt(count, 10, 64)
	if err == nil && n >= p.Count {
		said := strings.NewReplacer(",", "", " ", "").Replace(in.text(typed.name))
		if said == count || said == "yes" && n <= mustType {
			return true
		}
	}
	if p.keep == nil {
		p.keep = map[string]string{}
	}
	p.keep["count"] = strconv.FormatInt(p.Count, 10)
	return false
}

// one returns a preview of an irreversible change of one thing.
func one(final string, says ...string) *Preview { return &Preview{Says: says, Final: final, Count: 1} }
