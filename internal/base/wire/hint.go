package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostNamed bounds how many kinds an error names.
const mostNamed = 10

// Hint returns the end of an error about a kind without an endpoint: the kinds in known that are spelled similarly,
// or else some of all. It is empty if no kind has an endpoint. known are the kinds that have one.
func Hint[V any](kind string, known map[string]V) string {
	if len(known) == 0 {
		return ""
	}
	all := slices.Sorted(maps.Keys(known))
	near := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return !almost(k, kind) })
	if len(near) > 0 {
		return " (did you mean " + strings.Join(cut(near), " or ") + "?)"
	}
	return " (an endpoint consumes " + strings.Join(cut(all), ", ") + ")"
}

// cut shortens a list to mostNamed names and the number of the others.
func cut(names []string) []string {
	if more := len(names) - mostNamed; more > 0 {
		return append(slices.Clone(names[:mostNamed]), fmt.Sprint(more, " more"))
	}
	return names
}

const mostTypos = 2

// almost reports whether a can be turned into b by at most mostTypos inserted, removed or replaced letters, and fewer
// than half of its letters.
func almost(a, b string) bool {
	typos := min(mostTypos, (len(b)-1)/2)
	if len(a)-len(b) > typos || len(b)-len(a) > typos {
		return false
	}
	row := make([]int, len(b)+1) // distances between the first letters of a and of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)] <= typos
}
