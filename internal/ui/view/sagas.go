package view

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Instances shows living instances. limit is the persistence.ListOptions.Limit of the read.
func Instances(all []persistence.Listed, limit int) List {
	next := ""
	if n := len(all); n > 0 && n >= min(cmp.Or(max(limit, 0), persistence.DefaultLimit), persistence.MaxLimit) {
		next = all[n-1].Instance.Saga + "/" + all[n-1].Instance.Key
	}
	return listOf("instances", "SAGA|KEY|VERSION|STARTED|CHANGED|TIMEOUTS|NEXT|REMEMBERED UNTIL", all,
		func(l persistence.Listed) Row {
			i := l.Instance
			return Row{JSON: instanceOf(l), Cells: []string{i.Saga, i.Key, wide(i.Version), Moment(l.Started),
				Moment(l.Changed), strconv.Itoa(len(i.Pending)), Moment(firstDue(i.Pending)),
				Moment(i.RememberedUntil())}}
		}).before(next)
}

// Quiet shows instances that may be stuck.
func Quiet(all []persistence.Listed) List {
	return listOf("instances", "SAGA|KEY|VERSION|STARTED|CHANGED|TIMEOUTS|NEXT|OVERDUE SINCE", all,
		func(q persistence.Listed) Row {
			i := q.Instance
			return Row{JSON: append(instanceOf(q), "overdue", timeOrNull(q.Overdue)), Cells: []string{i.Saga,
				i.Key, wide(i.Version), Moment(q.Started), Moment(q.Changed), strconv.Itoa(len(i.Pending)),
				Moment(firstDue(i.Pending)), Moment(q.Overdue)}}
		})
}

func firstDue(pending []saga.Pending) (first time.Time) {
	for _, p := range pending {
		if first.IsZero() || p.Due.Before(first) {
			first = p.Due
		}
	}
	return first
}

func instanceOf(l persistence.Listed) Object {
	i, originator := l.Instance, any(nil)
	timeouts := objects(i.Pending, timeoutOf)
	if i.Originator != (saga.Originator{}) {
		originator = Object{"endpoint", i.Originator.Endpoint, "message", i.Originator.MessageID}
	}
	o := Object{"saga", i.Saga, "key", i.Key, "id", i.ID, "version", i.Version, "state_version", i.StateVersion,
		"started", l.Started, "changed", l.Changed, "remembered_until", timeOrNull(i.RememberedUntil()), "timeouts",
		timeouts, "originator", originator}
	if l.Faulty != nil {
		o = append(o, "row_error", l.Faulty.Error())
	}
	if len(i.State) > 0 {
		o = append(o, "state", json.RawMessage(i.State))
	}
	return o
}

// Instance shows one instance with its state, and its last events.
func Instance(l persistence.Listed, versions []history.Version) View {
	i := l.Instance
	v := View{JSON: append(instanceOf(l), "timeline", objects(versions, versionOf)), Parts: []Part{
		fields("saga", i.Saga, "key", i.Key, "id", i.ID.String(), "version", wide(i.Version), "state version",
			strconv.Itoa(i.StateVersion), "started", Moment(l.Started), "changed", Moment(l.Changed),
			"started by endpoint", cmp.Or(i.Originator.Endpoint, "(from outside)"), "started by message",
			idText(i.Originator.MessageID))}}
	if l.Faulty != nil {
		v.Parts = append(v.Parts, linef("A part of the row cannot be read: %v", l.Faulty))
	}
	if until := i.RememberedUntil(); !until.IsZero() {
		v.Parts = append(v.Parts, linef("It has completed, and its key is reserved until %s.", Moment(until)))
	}
	if len(i.Pending) > 0 {
		v.Parts = append(v.Parts, Line("timeouts:"))
	}
	for _, timeout := range i.Pending {
		v.Parts = append(v.Parts, linef("    %s  %s", Moment(timeout.Due),
			strings.TrimSpace(timeout.Kind+" "+timeout.Name)))
	}
	v.Parts = append(v.Parts, Line("state:"), Block(Body(i.State)), Line("history:"), timeline(versions))
	return v
}
