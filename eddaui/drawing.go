package eddaui

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/edda-go/edda/eddaui/internal/words"
)

// The size of a spark line.
const (
	sparkHeight = 20
	sparkBar    = 4 // of which a quarter is the space between two bars
)

// spark draws numbers as bars, the last one beside its predecessors. What it shows is in its name, too.
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
	name := fmt.Sprintf("%s %s in %d hours, %s at most in one, %s in the last", words.Count(sum), noun,
		len(numbers), words.Count(most), words.Count(numbers[len(numbers)-1]))
	//nolint:gosec // every part is made here, of numbers and of a noun of ours
	return template.HTML(fmt.Sprintf(`<svg class="spark" role="img" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+
		`<title>%s</title><path d="%s"/></svg>`, len(numbers)*sparkBar, sparkHeight, name, bars.String()))
}
