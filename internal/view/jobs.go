package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/recoverability/deadletter"
)

// Jobs are those that retry or discard many dead letters.
func Jobs(all []deadletter.Job) List {
	return listOf("jobs", "JOB|ACTION|STATE|ENDED|KEPT|RATE|CREATED|CHANGED|FILTER", all, func(j deadletter.Job) Row {
		rate := ""
		if j.Rate > 0 {
			rate = strconv.FormatFloat(j.Rate, 'g', -1, 64)
		}
		return Row{JSON: jobOf(j), Cells: []string{wide(j.Number), string(j.Action), string(j.State), wide(j.Ended),
			wide(j.Kept), rate, Moment(j.Created), Moment(j.Changed), filterText(j.Filter)}}
	})
}

// Job is one job, and what it has done.
func Job(j deadletter.Job) View {
	done := map[deadletter.Action]string{deadletter.ActionRetry: "retried", deadletter.ActionDiscard: "discarded"}
	return View{JSON: jobOf(j), Parts: []Part{linef("Job %d is %s: %d dead letters were %s.", j.Number, j.State,
		j.Ended, done[j.Action])}}
}

func jobOf(j deadletter.Job) Object {
	return Object{"job", j.Number, "action", j.Action, "state", j.State, "ended", j.Ended, "kept", j.Kept, "error",
		j.Error, "filter", filterText(j.Filter), "rate", j.Rate, "created", j.Created, "changed", j.Changed}
}

// filterText is a filter as it stands on a command line.
func filterText(f deadletter.Filter) string {
	var parts []string
	for _, flag := range [][2]string{{"endpoint", f.Endpoint}, {"kind", f.Kind}, {"group", f.Group}} {
		if flag[1] != "" {
			parts = append(parts, "--"+flag[0]+" "+flag[1])
		}
	}
	if !f.MessageID.IsZero() {
		parts = append(parts, "--message "+f.MessageID.String())
	}
	for _, flag := range []struct {
		name string
		at   time.Time
	}{{"since", f.DiedFrom}, {"until", f.DiedBefore}} {
		if !flag.at.IsZero() {
			parts = append(parts, "--"+flag.name+" "+flag.at.Format(time.RFC3339Nano))
		}
	}
	if len(parts) == 0 {
		return "--all"
	}
	return strings.Join(parts, " ")
}
