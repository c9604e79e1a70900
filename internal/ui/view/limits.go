package view

import (
	"cmp"
	"strconv"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// Limits shows all limits, with the number of used slots, and in their objects the holders.
func Limits(all []operate.LimitInfo, held []operate.Holder) List {
	of := words.ByLimit(held)
	return listOf("limits", "NAME|LIMIT|HELD|DRAINING|WAITING|WAITED|DECLARED|SET BY", all,
		func(i operate.LimitInfo) Row {
			return Row{JSON: limitOf(i, of[i.Name]), Cells: []string{i.Name, strconv.Itoa(i.Limit),
				strconv.Itoa(i.Held), strconv.Itoa(i.Draining), strconv.Itoa(i.Waiting), span(i.Waited), declared(i),
				setBy(i)}}
		})
}

// Limit shows one limit, and its holders.
func Limit(i operate.LimitInfo, held []operate.Holder) View {
	v := limited(i, held)
	table := Table{Columns: []string{"SLOT", "PROCESS", "SINCE", "LEASE ENDS IN", "DOES"}}
	for _, h := range held {
		table.Rows = append(table.Rows, []string{strconv.Itoa(h.Slot), h.Process + lost(h), Moment(h.Since),
			span(h.Left), h.Does})
	}
	if len(held) > 0 {
		v.Parts = append(v.Parts, table)
	}
	return v
}

func lost(h operate.Holder) string {
	if h.Lost {
		return " (has died)"
	}
	return ""
}

func holderOfLimit(h operate.Holder) Object {
	return Object{"slot", h.Slot, "holder", h.Name, "process", h.Process, "lost", h.Lost, "draining", h.Draining,
		"since", timeOrNull(h.Since), "until", timeOrNull(h.Until), "does", h.Does, "messages", h.Messages}
}

func limited(i operate.LimitInfo, held []operate.Holder) View {
	return View{JSON: limitOf(i, held), Parts: []Part{fields("name", i.Name, "limit", strconv.Itoa(i.Limit), "held",
		strconv.Itoa(i.Held), "draining", strconv.Itoa(i.Draining), "waiting", strconv.Itoa(i.Waiting), "waited",
		span(i.Waited), "declared", declared(i), "set by", setBy(i))}}
}

func limitOf(i operate.LimitInfo, held []operate.Holder) Object {
	ours := []Object{}
	for _, h := range held {
		ours = append(ours, holderOfLimit(h))
	}
	return Object{"name", i.Name, "limit", i.Limit, "held", i.Held, "draining", i.Draining, "waiting", i.Waiting,
		"oldest", timeOrNull(i.Oldest), "waited_seconds", i.Waited.Seconds(), "declared", i.Declared, "set_by",
		setBy(i), "holders", ours}
}

// setBy returns "operator" if an operator has set the number in force, else "program".
func setBy(i operate.LimitInfo) string {
	if i.Operated {
		return "operator"
	}
	return "program"
}

func declared(i operate.LimitInfo) string { return cmp.Or(numberText(i.Declared), "-") }
