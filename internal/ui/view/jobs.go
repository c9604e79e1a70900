package view

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/recoverability"
)

// Jobs shows jobs that retry or discard many dead letters.
func Jobs(all []recoverability.Job) List {
	const columns = "JOB|ACTION|STATE|ENDED|KEPT|UNDONE|RATE|CREATED|CHANGED|FILTER"
	return listOf("jobs", columns, all, func(j recoverability.Job) Row {
		rate := ""
		if j.Rate > 0 {
			rate = strconv.FormatFloat(j.Rate, 'g', -1, 64)
		}
		return Row{JSON: jobOf(j), Cells: []string{wide(j.Number), string(j.Action), string(j.State), wide(j.Ended),
			wide(j.Kept), wide(j.Undone), rate, Moment(j.Created), Moment(j.Changed), filterText(j.Filter)}}
	})
}

// Job shows one job, and its progress.
func Job(j recoverability.Job) View {
	done := map[recoverability.JobAction]string{recoverability.JobRetry: "retried",
		recoverability.JobDiscard: "discarded"}
	return View{JSON: jobOf(j), Parts: []Part{linef("Job %d is %s: %s %s.", j.Number, j.State,
		Many(j.Ended, "dead letter was", "dead letters were"), done[j.Action])}}
}

func jobOf(j recoverability.Job) Object {
	return Object{"job", j.Number, "action", j.Action, "state", j.State, "ended", j.Ended, "kept", j.Kept, "undone",
		j.Undone, "error", j.Error, "filter", filterText(j.Filter), "rate", j.Rate, "to", j.To, "plan",
		append([]int{}, j.Plan...), "stage", j.Stage, "patch", patchOf(j), "created", j.Created, "changed", j.Changed}
}

// Undone shows the result of undoing a job.
func Undone(job int64, done recoverability.Undone) View {
	return View{JSON: Object{"job", job, "returned", done.Returned, "handled", done.Handled}, Parts: []Part{linef(
		"Messages of job %d that are dead letters again: %d. Left as they are, because a handler has tried them or "+
			"has them in hand, or they were moved or retried once more: %d.", job, done.Returned, done.Handled)}}
}

// filterText returns a filter in the syntax of the command line.
func filterText(f recoverability.LetterFilter) string {
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

// patchOf returns the patch of a job as JSON, or nil.
func patchOf(j recoverability.Job) any {
	if j.Patch == nil {
		return nil
	}
	return json.RawMessage(j.Patch)
}

// Previews shows dead letters as a patch would make them.
func Previews(all []recoverability.PatchPreview) View {
	v := View{JSON: Object{"previews", objects(all, func(p recoverability.PatchPreview) Object {
		if p.Err != nil {
			return Object{"number", p.Letter.Number, "diff", "", "error", p.Err.Error()}
		}
		return Object{"number", p.Letter.Number, "diff", history.Diff(p.Letter.Body, p.Body), "error", ""}
	})}}
	for _, p := range all {
		switch diff := history.Diff(p.Letter.Body, p.Body); {
		case p.Err != nil:
			v.Parts = append(v.Parts, linef("%v", p.Err))
		case diff == "":
			v.Parts = append(v.Parts, linef("dead letter %d: nothing differs", p.Letter.Number))
		default:
			v.Parts = append(v.Parts, linef("dead letter %d: %s", p.Letter.Number, diff))
		}
	}
	return v
}
