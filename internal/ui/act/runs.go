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
	Name: "run.retry", Pattern: "/runs/{id}/retry", Rights: []Right{Retry}, Button: "Retry",
	Says:   "It is queued again, with the message that it has. A dead run holds its manifest no longer.",
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
	Name: "run.cancel", Pattern: "/runs/{id}/cancel", Rights: []Right{Schedule}, Button: "Cancel",
	Says: "It ends. A handler that works on its message can no longer commit. The manifest may fire again: pause it " +
		"first if it must not.",
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
		return one("What its handler did so far is lost. It can be retried, from the beginning.",
			fmt.Sprintf("Run %s of manifest %s, which is %s, is cancelled.", r.ID, r.Manifest, r.State)), nil
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
