package view

import (
	"strconv"

	"github.com/edda-go/edda/scheduler"
)

// Runs shows a page of runs, the newest first. limit is the scheduler.RunFilter.Limit of the read.
func Runs(all []scheduler.RunInfo, limit int) List {
	next := ""
	if n := len(all); n > 0 && n == limit {
		next = all[n-1].ID.String()
	}
	return listOf("runs", "RUN|MANIFEST|STATE|ORIGIN|DUE|ATTEMPT|QUEUED|ENDED|ERROR", all,
		func(r scheduler.RunInfo) Row {
			return Row{JSON: runOf(r), Cells: []string{r.ID.String(), r.Manifest, string(r.State), r.Origin,
				Moment(r.Due), strconv.Itoa(r.Attempt), Moment(r.Queued), Moment(r.Ended), Shortened(r.Error, 60)}}
		}).before(next)
}

func runOf(r scheduler.RunInfo) Object {
	o := Object{"run", r.ID, "manifest", r.Manifest, "group", r.Group, "origin", r.Origin, "state", r.State, "due",
		r.Due.UTC(), "ready", r.Ready.UTC(), "queued", r.Queued.UTC(), "ended", timeOrNull(r.Ended), "priority",
		r.Priority, "kind", r.Kind, "attempt", r.Attempt, "refused", r.Refused, "message", idOrNull(r.Message),
		"deadline", timeOrNull(r.Deadline), "beat", timeOrNull(r.Beat), "error", r.Error, "note", r.Note}
	if len(r.Attempts) > 0 {
		o = append(o, "attempts", objects(r.Attempts, func(a scheduler.Attempt) Object {
			return Object{"attempt", a.Attempt, "message", a.Message, "sent", a.Sent.UTC(), "began",
				timeOrNull(a.Began), "worker", a.Worker, "ended", timeOrNull(a.Ended), "outcome", a.Outcome, "error",
				a.Error}
		}))
	}
	return o
}

// Run shows one run with its attempts, and with body its message.
func Run(r scheduler.RunInfo, body bool) View {
	v := View{JSON: append(runOf(r), "size", len(r.Body)), Parts: []Part{
		fields("run", r.ID.String(), "manifest", r.Manifest, "group", r.Group, "state", string(r.State), "origin",
			r.Origin, "due", Moment(r.Due), "ready", Moment(r.Ready), "queued", Moment(r.Queued), "ended",
			Moment(r.Ended), "kind", r.Kind, "priority", strconv.Itoa(r.Priority), "deadline", Moment(r.Deadline),
			"sign of life", Moment(r.Beat), "refused", strconv.Itoa(r.Refused), "error", r.Error, "note", r.Note)}}
	if len(r.Attempts) > 0 {
		table := Table{Columns: []string{"ATTEMPT", "MESSAGE", "SENT", "BEGAN", "ENDED", "OUTCOME", "WORKER", "ERROR"}}
		for _, a := range r.Attempts {
			table.Rows = append(table.Rows, []string{strconv.Itoa(a.Attempt), a.Message.String(), Moment(a.Sent),
				Moment(a.Began), Moment(a.Ended), a.Outcome, a.Worker, Shortened(a.Error, 80)})
		}
		v.Parts = append(v.Parts, table)
	}
	if body {
		v.JSON = append(v.JSON, bodyOf(r.Body)...)
		v.Parts = append(v.Parts, Block(Body(r.Body)))
	}
	return v
}
