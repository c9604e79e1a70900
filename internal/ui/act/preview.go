package act

import (
	"strconv"
	"strings"
)

// Preview is what is to be agreed to before it is done.
type Preview struct {
	Says     []string  // what is going to happen
	Final    string    // why it cannot be undone, "" if it can
	Count    int64     // of what it is about
	Examples []Example // the first of them

	keep map[string]string // fields that hold what was looked at
	form Form
}

// Example is one of those that an action is about.
type Example struct {
	Text          string
	Before, After string // bodies or states, "" if there is nothing to show
	Error         string // why it stays as it is
}

// mustType is the number above which it has to be typed.
const mustType = 1000

// typed is the field in which somebody agrees.
var typed = field{name: "confirm", label: "Confirmation", kind: line, most: 30}

// agreement are the fields of a confirmation.
var agreement = []field{
	{name: "count", label: "Number", kind: number, most: 1 << 40}, typed,
}

// Form is what does it, with the number and everything that was sent before.
func (p *Preview) Form() Form { return p.form }

// Type reports whether the number has to be typed.
func (p *Preview) Type() bool { return p.Count > mustType }

// agreed reports whether in agrees to what is previewed: to a number that is not smaller, and which was typed if it is
// a large one.
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

// one is a preview of something that is done to one thing, for good.
func one(final string, says ...string) *Preview { return &Preview{Says: says, Final: final, Count: 1} }
