package act

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Manifest returns the forms of a manifest. body is its message, nil if it may not be shown or if a part of it is
// masked.
func Manifest(m scheduler.ManifestInfo, body []byte) []Form {
	name := values{"manifest", m.Name}
	forms := []Form{}
	if m.State != scheduler.ManifestOrphan {
		forms = append(forms, trigger.form(append(name, "body", editable(body))))
	}
	if m.Paused.Since.IsZero() {
		forms = append(forms, pauseManifest.form(name))
	} else {
		forms = append(forms, resumeManifest.form(name))
	}
	if m.State != scheduler.ManifestOrphan {
		forms = append(forms, backfill.form(name), removeManifest.form(name))
	}
	return forms
}

func pageOfManifest(in Input) string { return "manifests/" + segment(in.text("manifest")) }

func pageOfManifests(Input) string { return "manifests" }

var trigger = &Action{
	Name: "manifest.trigger", Pattern: "/manifests/{manifest}/trigger", Rights: []Right{Schedule}, Button: "Trigger",
	Says: "Queues one run in addition to the scheduled runs, even if the manifest is paused.",
	fields: []field{of("manifest"),
		{name: "body", label: "Message", kind: area, most: mostText, hint: "JSON; empty: the message of the manifest"},
		{name: "delay", label: "Send after", kind: lasting, hint: "such as 10m; empty: at once"},
		{name: "priority", label: "Priority", kind: number, least: 1, most: 31,
			hint: "empty: the priority of the manifest"}, why},
	page: pageOfManifest, done: "The run was queued.",
	command: func(in Input) string {
		c := shell("edda manifest trigger", in.text("manifest"))
		if body := in.text("body"); body != "" {
			c += " --body " + words.Quoted(string(packed([]byte(body)))) // one line, so that a shell takes it
		}
		return in.because(in.flags(c, "delay", "delay", "priority", "priority"))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		var input saga.Message
		if in.text("body") != "" {
			if err := in.checkJSON("body"); err != nil {
				return Done{}, err
			}
			m, err := d.Scheduler.Manifest(ctx, in.text("manifest"))
			if err != nil {
				return Done{}, err
			}
			input = saga.Raw{Name: m.Kind, Body: packed([]byte(in.text("body")))}
		}
		run, err := d.Scheduler.Trigger(ctx, in.text("manifest"), input,
			scheduler.TriggerOptions{Delay: in.lasting("delay"), Priority: int(in.number("priority"))})
		return Done{Page: "runs/" + run.String()}, err
	},
}

var pauseManifest = &Action{
	Name: "manifest.pause", Pattern: "/manifests/{manifest}/pause", Rights: []Right{Pause}, Button: "Pause",
	Says: "The manifest does not fire until you resume it. Queued and active runs continue.", page: pageOfManifest,
	fields: []field{of("manifest"), whyMust}, done: "The manifest was paused.",
	command: func(in Input) string { return in.because(shell("edda manifest pause", in.text("manifest"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Scheduler.Pause(ctx, in.text("manifest"), in.Reason())
	},
}

var resumeManifest = &Action{
	Name: "manifest.resume", Pattern: "/manifests/{manifest}/resume", Rights: []Right{Pause}, Button: "Resume",
	Says:   "The manifest fires again. Its misfire policy decides about due times that passed during the pause.",
	fields: []field{of("manifest"), why}, page: pageOfManifest, done: "The manifest was resumed.",
	command: func(in Input) string { return in.because(shell("edda manifest resume", in.text("manifest"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Scheduler.Resume(ctx, in.text("manifest"))
	},
}

var removeManifest = &Action{
	Name: "manifest.remove", Pattern: "/manifests/{manifest}/remove", Rights: []Right{Admin}, Button: "Remove manifest",
	Says:   "The manifest no longer fires, and Edda cancels its runs that were not sent yet.",
	fields: []field{of("manifest"), why}, page: pageOfManifests, done: "The manifest was removed.",
	command: func(in Input) string { return in.because(shell("edda manifest remove", in.text("manifest"))) },
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		m, err := d.Scheduler.Manifest(ctx, in.text("manifest"))
		if err != nil {
			return nil, err
		}
		text := "This cannot be undone: no program declares this manifest."
		if m.Owner != "" {
			text = fmt.Sprintf("Runs that were not sent yet are cancelled. %s creates the manifest again at its next "+
				"start, if it still declares it.", m.Owner)
		}
		return one(text, fmt.Sprintf("Manifest %s will be removed. Edda deletes it and its runs after some minutes.",
			m.Name)), nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Scheduler.Remove(ctx, in.text("manifest"))
	},
}

var backfill = &Action{
	Name: "manifest.backfill", Pattern: "/manifests/{manifest}/backfill", Rights: []Right{Schedule},
	Button: "Backfill", Says: "Queues a run for each due time of a past period that has no run.",
	fields: []field{of("manifest"),
		{name: "from", label: "From", kind: past, must: true, example: "6h",
			hint: "a time such as 2026-11-21T10:00:00Z, or an age such as 90m"},
		{name: "until", label: "Until before", kind: past, must: true, example: "1h"},
		{name: "max", label: "Due times at most", kind: number, least: 1, most: scheduler.MaxOccurrences,
			hint: "empty: 1,000"}, why},
	page: pageOfManifest, done: "Runs queued: %d. Due times that already had a run: %d.",
	command: func(in Input) string {
		c := shell("edda manifest backfill", in.text("manifest"))
		return in.because(in.flags(c, "from", "from", "until", "until", "max", "max"))
	},
	check: lookAtBackfill, do: doBackfill,
}

// period returns the period to backfill. The confirmation has its times.
func (d *Desk) period(ctx context.Context, in Input) (p scheduler.Period, err error) {
	now, err := d.now(ctx)
	if err != nil {
		return p, err
	}
	p = scheduler.Period{From: in.moment("from", now, -1), Until: in.moment("until", now, -1),
		Max: int(in.number("max"))}
	if !p.From.Before(p.Until) {
		err = in.refuse(http.StatusBadRequest, "From: this is not before the end of the period.")
	}
	return p, err
}

func lookAtBackfill(ctx context.Context, d *Desk, in Input) (*Preview, error) {
	p, err := d.period(ctx, in)
	if err != nil {
		return nil, err
	}
	p.DryRun = true
	would, err := d.Scheduler.Backfill(ctx, in.text("manifest"), p)
	if err != nil {
		return nil, err
	}
	if len(would.Times) == 0 {
		return nil, in.refuse(http.StatusBadRequest, "From: the manifest has no past due time in this period.")
	}
	v := &Preview{Count: int64(len(would.Times)), keep: map[string]string{
		"from": p.From.UTC().Format(time.RFC3339Nano), "until": p.Until.UTC().Format(time.RFC3339Nano),
	}}
	v.Says = []string{"The period has " + words.Of(v.Count, "due time") + ". Each due time without a run gets one. " +
		"You can cancel these runs later; the effects of their handlers cannot be undone."}
	if !would.Next.IsZero() {
		v.Says = append(v.Says,
			"The period has more due times, from "+would.Next.UTC().Format(time.RFC3339)+" on. They are not included.")
	}
	for _, t := range would.Times[:min(len(would.Times), examplesShown)] {
		v.Examples = append(v.Examples, Example{Text: "Due " + t.Format(time.RFC3339)})
	}
	return v, nil
}

func doBackfill(ctx context.Context, d *Desk, in Input) (Done, error) {
	p, err := d.period(ctx, in)
	if err != nil {
		return Done{}, err
	}
	done, err := d.Scheduler.Backfill(ctx, in.text("manifest"), p)
	return Done{Numbers: []int64{int64(done.Queued), int64(done.Present)}}, err
}

var ofManifests = []*Action{trigger, pauseManifest, resumeManifest, backfill, removeManifest}
