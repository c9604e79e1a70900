package act

import (
	"context"
	"strconv"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/scheduler"
)

// ManifestGroup returns the forms of a group of manifests.
func ManifestGroup(g scheduler.GroupInfo) []Form {
	name := values{"group", g.Name}
	forms := []Form{pauseGroup.form(name)}
	if !g.Paused.IsZero() {
		forms = []Form{resumeGroup.form(name)}
	}
	strict := ""
	if g.Strict {
		strict = "yes"
	}
	forms = append(forms, setGroup.form(append(name, "max", strconv.Itoa(g.Max), "priority", strconv.Itoa(g.Priority),
		"strict", strict)))
	if g.Active+g.Queued > 0 {
		forms = append(forms, cancelGroup.form(name))
	}
	return forms
}

var pauseGroup = &Action{
	Name: "group.pause", Pattern: "/groups/{group}/pause", Rights: []Right{Pause}, Button: "Pause",
	Says:   "No manifest of the group fires, and no queued run is sent, until you resume it. Active runs continue.",
	fields: []field{of("group"), whyMust}, page: pageOfManifests, done: "The group was paused.",
	command: func(in Input) string { return in.because(shell("edda group pause", in.text("group"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Scheduler.PauseGroup(ctx, in.text("group"), in.Reason())
	},
}

var resumeGroup = &Action{
	Name: "group.resume", Pattern: "/groups/{group}/resume", Rights: []Right{Pause}, Button: "Resume",
	Says:   "The manifests of the group fire again. A manifest that has a pause of its own stays paused.",
	fields: []field{of("group"), why}, page: pageOfManifests, done: "The group was resumed.",
	command: func(in Input) string { return in.because(shell("edda group resume", in.text("group"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Scheduler.ResumeGroup(ctx, in.text("group"))
	},
}

var setGroup = &Action{
	Name: "group.set", Pattern: "/groups/{group}/set", Rights: []Right{Limit}, Button: "Set limit",
	Says: "Sets how many runs of the group may be active at the same time. A lower number ends no active run.",
	fields: []field{of("group"),
		{name: "max", label: "Active runs at most", kind: number, most: 1 << 30, hint: "0: no limit"},
		{name: "priority", label: "Priority", kind: number, most: 31},
		{name: "strict", label: "Never exceed this, not even briefly", kind: tick, most: 10}, why},
	page: pageOfManifests, done: "The group was set.",
	command: func(in Input) string {
		c := in.flags(shell("edda group set", in.text("group")), "max", "max", "priority", "priority")
		if in.ticked("strict") {
			c += " --strict"
		}
		return in.because(c)
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		g, err := d.Scheduler.GroupOf(ctx, in.text("group"))
		if err != nil {
			return Done{}, err
		}
		g.Max, g.Priority, g.Strict = int(in.number("max")), int(in.number("priority")), in.ticked("strict")
		return Done{}, d.Scheduler.SetGroup(ctx, g.Group)
	},
}

var cancelGroup = &Action{
	Name: "group.cancel", Pattern: "/groups/{group}/cancel", Rights: []Right{Schedule}, Button: "Cancel runs",
	Says:   "Ends the waiting, queued and active runs of the group. Pause the group first, or new runs start.",
	fields: []field{of("group"), whyMust}, page: pageOfManifests, done: "Runs cancelled: %d.",
	command: func(in Input) string {
		return in.flags(shell("edda group cancel", in.text("group")), "note", "reason")
	},
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		g, err := d.Scheduler.GroupOf(ctx, in.text("group"))
		if err != nil {
			return nil, err
		}
		p := &Preview{Count: int64(g.Active + g.Queued),
			Final: "This cannot be undone, but you can retry each run. A handler that is working on a run can no " +
				"longer commit."}
		p.Says = []string{words.Of(p.Count, "run") + " of group " + g.Name +
			", queued or active, and all its waiting runs will be cancelled."}
		return p, nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		n, err := d.Scheduler.CancelGroup(ctx, in.text("group"), in.Reason())
		return Done{Numbers: []int64{int64(n)}}, err
	},
}

var ofGroups = []*Action{pauseGroup, resumeGroup, setGroup, cancelGroup}
