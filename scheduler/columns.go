package scheduler

import "time"

// toWrite is a row, and whether its schedule begins anew.
type toWrite struct {
	row
	afresh bool
}

// columnsOf are the arguments of insert_manifests and update_manifests: a thousand manifests are one statement.
func columnsOf(owner string, now time.Time, rows []toWrite) []any {
	n := len(rows)
	var (
		names, definitions, parents, groups, kinds = make([]string, n), make([]string, n), make([]string, n),
			make([]string, n), make([]string, n)
		follows, overlaps, stopped, afresh = make([]bool, n), make([]bool, n), make([]bool, n), make([]bool, n)
		priorities, retries                = make([]int32, n), make([]int32, n)
		delays, mosts, timeouts            = make([]int64, n), make([]int64, n), make([]int64, n)
		bodies                             = make([][]byte, n)
		dues                               = make([]*time.Time, n)
	)
	for i, r := range rows {
		names[i], definitions[i], parents[i], groups[i], kinds[i] = r.name, string(r.text), r.parent, r.group, r.kind
		follows[i], overlaps[i], stopped[i], afresh[i] = r.follows, r.overlap, r.stopped, r.afresh
		priorities[i], retries[i] = int32(r.priority), int32(r.retries)
		delays[i], mosts[i], timeouts[i] = r.retryDelay.Microseconds(), r.retryMost.Microseconds(),
			r.timeout.Microseconds()
		bodies[i] = r.body
		if due := r.plan.First(now); r.afresh && !due.IsZero() {
			dues[i] = &due
		}
	}
	return []any{owner, names, definitions, parents, follows, groups, priorities, overlaps, retries, delays, mosts,
		timeouts, kinds, bodies,
		stopped, dues, afresh}
}

// groupColumns are the arguments of insert_groups and update_groups.
func groupColumns(owner string, groups []groupRow) []any {
	n := len(groups)
	names, declared := make([]string, n), make([]string, n)
	mosts, priorities, strict := make([]int32, n), make([]int32, n), make([]bool, n)
	for i, g := range groups {
		names[i], declared[i], strict[i] = g.Name, g.text(), g.Strict
		mosts[i], priorities[i] = int32(g.Max), int32(g.Priority)
	}
	return []any{owner, names, mosts, strict, priorities, declared}
}
