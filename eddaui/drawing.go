package eddaui

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// The size of a spark line.
const (
	sparkHeight = 20
	sparkBar    = 4 // a quarter of it is the space between two bars
	sparkStep   = 2 // from one minute to the next
)

// spark draws numbers as bars. Its name describes them, too, for screen readers.
func spark(noun string, numbers []int64) template.HTML {
	most, sum := int64(0), int64(0)
	for _, n := range numbers {
		most, sum = max(most, n), sum+n
	}
	if most == 0 {
		return `<span class="none">–</span>`
	}
	var bars strings.Builder
	for at, n := range numbers {
		if n > 0 {
			height := max(1, n*sparkHeight/most)
			fmt.Fprintf(&bars, "M%d %dh3v%dh-3z", at*sparkBar, sparkHeight-height, height)
		}
	}
	name := fmt.Sprintf("%s %s in %d hours, at most %s in an hour, %s in the last hour", words.Count(sum), noun,
		len(numbers), words.Count(most), words.Count(numbers[len(numbers)-1]))
	//nolint:gosec // every part is made here, of numbers and of a noun of ours
	return template.HTML(fmt.Sprintf(`<svg class="spark" role="img" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+
		`<title>%s</title><path d="%s"/></svg>`, len(numbers)*sparkBar, sparkHeight, name, bars.String()))
}

// minutes draws how much an endpoint has handled in each of the last 60 minutes, as a line that is flat at 0, with
// red ticks for dead letters. If no process has counted by the minute, it returns a text that there is nothing to
// draw.
func minutes(r operate.Recent) template.HTML {
	if !r.Known() {
		return `<span class="soft" title="The processes of this endpoint are of an older version, which counts ` +
			`messages only by the hour.">by the hour only</span>`
	}
	most := int64(1)
	for _, n := range r.Handled {
		most = max(most, n)
	}
	var line, ticks strings.Builder
	for at, n := range r.Handled {
		command := 'L'
		if at == 0 {
			command = 'M'
		}
		fmt.Fprintf(&line, "%c%d %d", command, at*sparkStep+1, sparkHeight-1-n*(sparkHeight-2)/most)
		if r.Dead[at] > 0 {
			fmt.Fprintf(&ticks, "M%d %dv-5", at*sparkStep+1, sparkHeight)
		}
	}
	marks := ""
	if ticks.Len() > 0 {
		marks = `<path class="bad" d="` + ticks.String() + `"/>`
	}
	//nolint:gosec // every part is made here, of numbers
	return template.HTML(fmt.Sprintf(`<svg class="spark line" role="img" width="%d" height="%d" `+
		`viewBox="0 0 %[1]d %[2]d"><title>%s</title><path d="%s"/>%s</svg>`, len(r.Handled)*sparkStep, sparkHeight,
		minutesName(&r, most), line.String(), marks))
}

// minutesName returns a text that describes the line.
func minutesName(r *operate.Recent, most int64) string {
	handled, last := sum(r.Handled[:]), r.Handled[len(r.Handled)-1]
	if handled == 0 {
		most = 0
	}
	name := fmt.Sprintf("%s in %d minutes, at most %s in a minute, %s in the last minute", words.Of(handled, "message"),
		len(r.Handled), words.Count(most), words.Count(last))
	if retried := sum(r.Retried[:]); retried > 0 {
		name += ", " + words.Of(retried, "attempt") + " failed"
	}
	if dead := sum(r.Dead[:]); dead > 0 {
		name += ", " + words.Count(dead) + " died"
	}
	if r.Untold > 0 {
		name += fmt.Sprintf("; in this hour and the previous one %s more, which programs of an older version "+
			"counted by the hour", words.Count(r.Untold))
	}
	return name
}

func sum(numbers []int64) (n int64) {
	for _, one := range numbers {
		n += one
	}
	return n
}
