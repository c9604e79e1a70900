package view

import (
	"cmp"
	"strconv"

	"github.com/edda-go/edda/operate"
)

// Limits are all of them, with how much of each is used.
func Limits(all []operate.LimitInfo) List {
	return listOf("limits", "NAME|LIMIT|HELD|DRAINING|WAITING|WAITED|DECLARED|SET BY", all,
		func(i operate.LimitInfo) Row {
			return Row{JSON: limitOf(i), Cells: []string{i.Name, strconv.Itoa(i.Limit), strconv.Itoa(i.Held),
				strconv.Itoa(i.Draining), strconv.Itoa(i.Waiting), span(i.Waited), declared(i), setBy(i)}}
		})
}

// Limit is one limit.
func Limit(i operate.LimitInfo) View {
	return View{JSON: limitOf(i), Parts: []Part{fields("name", i.Name, "limit", strconv.Itoa(i.Limit), "held",
		strconv.Itoa(i.Held), "draining", strconv.Itoa(i.Draining), "waiting", strconv.Itoa(i.Waiting), "waited",
		span(i.Waited), "declared", declared(i), "set by", setBy(i))}}
}

func limitOf(i operate.LimitInfo) Object {
	return Object{"name", i.Name, "limit", i.Limit, "held", i.Held, "draining", i.Draining, "waiting", i.Waiting,
		"oldest", timeOrNull(i.Oldest), "waited_seconds", i.Waited.Seconds(), "declared", i.Declared, "set_by",
		setBy(i)}
}

// setBy returns "operator" if an operator has set the number in force, else "program".
func setBy(i operate.LimitInfo) string {
	if i.Operated {
		return "operator"
	}
	return "program"
}

func declared(i operate.LimitInfo) string { return cmp.Or(numberText(i.Declared), "-") }
