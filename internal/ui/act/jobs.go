package act

import (
	"context"
	"strconv"

	"github.com/edda-go/edda/recoverability"
)

// Job returns the forms of a job on dead letters.
func Job(j recoverability.Job) (forms []Form) {
	number := values{"number", strconv.FormatInt(j.Number, 10)}
	switch j.State {
	case recoverability.JobOpen:
		forms = append(forms, stopJob.form(number), resumeJob.form(number))
	case recoverability.JobPaused:
		forms = append(forms, resumeJob.form(number), stopJob.form(number))
	case recoverability.JobDone, recoverability.JobCancelled:
	}
	if j.Action == recoverability.JobRetry && j.Patch == nil && j.Ended > j.Undone {
		forms = append(forms, undoJob.form(number))
	}
	return forms
}

func pageOfJob(in Input) string { return "jobs/" + segment(in.text("number")) }

var stopJob = &Action{
	Name: "dead.cancel", Pattern: "/jobs/{number}/stop", Rights: []Right{Retry, Edit, Discard}, Button: "Stop job",
	Says:   "Ends the job after its current step. It takes nothing back.",
	fields: []field{of("number"), why},
	page:   pageOfJob, done: "The job was stopped.",
	command: func(in Input) string { return in.because(shell("edda dead jobs --cancel", in.text("number"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.letters().CancelJob(ctx, in.number("number"))
	},
}

var resumeJob = &Action{
	Name: "dead.resume", Pattern: "/jobs/{number}/resume", Rights: []Right{Retry, Edit, Discard}, Button: "Resume job",
	Says: "Continues the job. A job that paused itself begins again with its first stage. A job that no process runs " +
		"continues where it stopped.",
	fields: []field{of("number"), why}, page: pageOfJob, done: "The job continues.",
	command: func(in Input) string { return in.because(shell("edda dead jobs --resume", in.text("number"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		j, err := d.letters().Job(ctx, in.number("number"))
		if err != nil {
			return Done{}, err
		}
		if needs := rightOf(j); !in.May(needs) {
			return Done{}, Forbidden(needs)
		}
		if j.State == recoverability.JobPaused {
			if err := d.letters().ResumeJob(ctx, j.Number); err != nil {
				return Done{}, err
			}
		}
		d.Jobs.Run(j.Number)
		return Done{}, nil
	},
}

// rightOf returns the right that an actor needs to run a job.
func rightOf(j recoverability.Job) Right {
	switch {
	case j.Action == recoverability.JobDiscard:
		return Discard
	case j.Patch != nil:
		return Edit
	}
	return Retry
}

var undoJob = &Action{
	Name: "dead.undo", Pattern: "/jobs/{number}/undo", Rights: []Right{Retry}, Button: "Undo job",
	Says: "Stops the job. Each of its messages that still waits in a queue, and that no handler has tried yet, " +
		"becomes a dead letter again.",
	fields: []field{of("number"), why}, page: pageOfJob,
	done: "The job was undone. Messages that are dead letters again: %d. Not changed, because a handler has tried " +
		"them or is handling them, or because they were moved or retried again: %d.",
	command: func(in Input) string { return in.because(shell("edda dead undo", in.text("number"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		done, err := d.letters().UndoJob(ctx, in.number("number"))
		return Done{Numbers: []int64{done.Returned, done.Handled}}, err
	},
}

var ofJobs = []*Action{stopJob, resumeJob, undoJob}
