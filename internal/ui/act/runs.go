package act

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Run returns the forms of a run of a manifest.
func Run(r scheduler.RunInfo) (forms []Form) {
	id := values{"id", r.ID.String()}
	if r.State != scheduler.RunSucceeded && r.State != scheduler.RunActive {
		forms = append(forms, retryRun.form(id))
	}
	if !r.State.Ended() {
		forms = append(forms, cancelRun.form(id))
	}
	return forms
}

func pageOfRun(in Input) string { return "runs/" + segment(in.text("id")) }

// run reads the id of a run. A text that is no id names no run.
func (in Input) run() (saga.ID, error) {
	id, err := saga.ParseID(in.text("id"))
	if err != nil {
		return id, scheduler.ErrNoRun
	}
	return id, nil
}

var retryRun = &Action{
	Name: "run.retry", Pattern: "/runs/{id}/retry", Rights: []Right{Retry}, Button: "Retry run",
	Says:   "Queues the run again with the same message. A dead run then no longer stops its manifest.",
	fields: []field{of("id"), whyMust}, page: pageOfRun, done: "The run was queued again.",
	command: func(in Input) string { return in.flags(shell("edda run retry", in.text("id")), "note", "reason") },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		id, err := in.run()
		if err != nil {
			return Done{}, err
		}
		return Done{}, d.Scheduler.Retry(ctx, id, in.Reason())
	},
}

var cancelRun = &Action{
	Name: "run.cancel", Pattern: "/runs/{id}/cancel", Rights: []Right{Schedule}, Button: "Cancel run",
	Says: "Ends the run. A handler that is working on its message can no longer commit. The manifest may then fire " +
		"again: pause it first if it must not.",
	fields: []field{of("id"), whyMust}, page: pageOfRun, done: "The run was cancelled.",
	command: func(in Input) string { return in.flags(shell("edda run cancel", in.text("id")), "note", "reason") },
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		id, err := in.run()
		if err != nil {
			return nil, err
		}
		r, err := d.Scheduler.RunOf(ctx, id)
		if err != nil {
			return nil, err
		}
		return one("The uncommitted work of its handler is lost. You can retry the run, from the beginning.",
			fmt.Sprintf("Run %s of manifest %s, which is %s, will be cancelled.", r.ID, r.Manifest, r.State)), nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		id, err := in.run()
		if err != nil {
			return Done{}, err
		}
		return Done{}, d.Scheduler.Cancel(ctx, id, in.Reason())
	},
}

var ofRuns = []*Action{retryRun, cancelRun}
