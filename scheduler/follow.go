package scheduler

import (
	"fmt"
	"slices"
	"strings"
)

// checkParents refuses parents that nobody declares, and manifests that follow each other in a circle: none of them
// would ever begin. stored holds the parents of stored manifests that are not declared here, and of those that they
// follow; "" is none.
func checkParents(rows []row, stored map[string]string, orphans map[string]bool) error {
	parents, faults := make(map[string]string, len(rows)+len(stored)), []error{}
	for name, parent := range stored {
		parents[name] = parent
	}
	declared := make(map[string]bool, len(rows))
	for _, r := range rows {
		declared[r.name] = true
		if r.follows {
			parents[r.name] = r.parent
		} else {
			parents[r.name] = ""
		}
	}
	for _, r := range rows {
		_, known := parents[r.parent]
		if r.parent != "" && (!known || orphans[r.parent] && !declared[r.parent]) {
			faults = append(faults, fmt.Errorf("manifest %q: When: its parent %q is neither declared nor stored",
				r.name, r.parent))
		}
	}
	if circle := findCircle(parents); circle != nil {
		faults = append(faults, fmt.Errorf("manifests follow each other in a circle, and none of them would "+
			"ever fire: %s", strings.Join(circle, " after ")))
	}
	return some(faults)
}

// findCircle is Kahn's sort: what nobody follows any more is taken away until nothing can be. Since each manifest
// follows one at most, what is left is circles alone. It returns one, its first name again at its end.
func findCircle(parents map[string]string) []string {
	followers := map[string]int{}
	for name, parent := range parents {
		if _, known := parents[parent]; parent != "" && known {
			followers[parent]++
		}
		followers[name] += 0
	}
	var ready []string
	for name, n := range followers {
		if n == 0 {
			ready = append(ready, name)
		}
	}
	for len(ready) > 0 {
		name := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		delete(followers, name)
		parent := parents[name]
		if _, left := followers[parent]; !left {
			continue
		}
		if followers[parent]--; followers[parent] == 0 {
			ready = append(ready, parent)
		}
	}
	// A manifest without a parent that others follow was taken away after them; it cannot be left.
	var left []string
	for name := range followers {
		left = append(left, name)
	}
	if len(left) == 0 {
		return nil
	}
	circle := []string{slices.Min(left)}
	for name := parents[circle[0]]; name != circle[0]; name = parents[name] {
		circle = append(circle, name)
	}
	return append(circle, circle[0])
}
