package act

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

// Crowd returns the forms of a crowd: the living instances of a saga whose keys begin with prefix. An actor who may
// see states may export them.
func Crowd(saga, prefix string, states bool) []Form {
	of := values{"saga", saga, "prefix", prefix}
	forms := []Form{sendCrowd.form(of), endCrowd.form(of)}
	if states {
		forms = append(forms, exportCrowd.form(of))
	}
	return forms
}

// long is the default of Desk.Long: less than a request may take.
const long = 20 * time.Second

// crowd are the fields that choose instances, with the time of the preview.
var crowd = []field{of("saga"), which("prefix"), {name: "until", label: "Until", kind: hidden, most: 60},
	{name: "after", label: "After", kind: target, most: mostName}}

// crowd returns the filter of the instances that a form is about. The instances of the page began before the page was
// read, so a form whose time cannot be read is refused: it would choose other instances.
func (in Input) crowd() (f operate.InstanceFilter, err error) {
	f = operate.InstanceFilter{Saga: in.text("saga"), Prefix: in.text("prefix"), After: in.text("after")}
	text := in.text("until")
	if text == "" {
		return f, nil
	}
	if f.Until, err = time.Parse(time.RFC3339, text); err != nil {
		in.values["until"] = ""
		return f, in.refuse(http.StatusBadRequest, fmt.Sprintf("Until: enter a time such as 2026-12-01T10:00:00Z, "+
			"not %q.", view.Escape(view.Shortened(text, 60))))
	}
	return f, nil
}

func pageOfCrowd(in Input) string {
	page := "sagas/" + segment(in.text("saga"))
	if prefix := in.text("prefix"); prefix != "" {
		page += "?prefix=" + url.QueryEscape(prefix)
	}
	return page
}

// crowdCommand returns a command for the chosen instances.
func (in Input) crowdCommand(command string) string {
	if in.text("prefix") == "" {
		command += " --all"
	}
	return in.because(in.flags(command, "prefix", "prefix", "started-before", "until", "after", "after"))
}

// lookAtCrowd counts the chosen instances, and shows the first of them.
func lookAtCrowd(what, final string) func(context.Context, *Desk, Input) (*Preview, error) {
	return func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		f, err := in.crowd()
		if err != nil {
			return nil, err
		}
		l, err := d.Op.Instances().Preview(ctx, f)
		if err != nil {
			return nil, err
		}
		if l.Count == 0 {
			return nil, &Refusal{Status: http.StatusNotFound, Text: "Nothing was changed: no active instance matches."}
		}
		p := &Preview{Count: l.Count, Final: final, keep: map[string]string{"until": l.Until.Format(time.RFC3339Nano),
			"job": cmp.Or(in.text("job"), newJob())}}
		says := words.Of(l.Count, "instance")
		if l.Capped {
			says += " or more"
		}
		says += " of " + in.text("saga")
		if prefix := in.text("prefix"); prefix != "" {
			says += " whose keys begin with " + prefix
		}
		p.Says = []string{says + " " + what + ". Instances that start after this preview are not included."}
		for _, i := range l.First {
			p.Examples = append(p.Examples, Example{Text: fmt.Sprintf("%s, version %d, started %s", i.Instance.Key,
				i.Instance.Version, view.Moment(i.Started))})
		}
		return p, nil
	}
}

// toCrowd changes many instances for as long as a request may take. The actor can continue with the rest.
func (d *Desk) toCrowd(
	ctx context.Context, in Input, do func(context.Context, operate.InstanceFilter) (operate.Progress, error),
) (Done, error) {
	f, err := in.crowd()
	if err != nil {
		return Done{}, err
	}
	brief, cancel := context.WithTimeout(ctx, d.Long)
	defer cancel()
	done, err := do(brief, f)
	if err != nil && ctx.Err() == nil && (brief.Err() != nil || done.Done+done.Gone+done.Kept > 0) {
		in.values["after"] = cmp.Or(done.Last, in.text("after"))
		return Done{}, in.refuse(http.StatusServiceUnavailable, fmt.Sprintf("The action stopped after the key %q. "+
			"Done so far, and not taken back: %s. Send the form again to continue with the others.",
			view.Escape(in.text("after")), words.Of(done.Done, "instance")))
	}
	return Done{Numbers: []int64{done.Done, done.Gone, done.Kept}}, err
}

var sendCrowd = &Action{
	Name: "saga.send.many", Pattern: "/sagas/{saga}/send", Rights: []Right{Send}, Button: "Send to all",
	Says: "Sends a message to each of these instances, even if the body contains a different key.",
	fields: append(append([]field{}, crowd...), append([]field{{name: "job", label: "Job", kind: hidden, most: 36},
		{name: "to", label: "Endpoint", kind: line, most: mostName,
			hint: "only for a kind that no endpoint consumes, such as the kind of a reply"}}, letterOf...)...),
	page: pageOfCrowd, check: lookAtCrowd("will get the message", "The effects of the handlers cannot be undone. If "+
		"you send this form twice, each instance still gets the message once. A new form sends it again."),
	done: "Instances that got the message: %d. Instances that had ended: %d. Not changed: %d.",
	command: func(in Input) string {
		command := shell("edda saga send", in.text("saga"), in.text("kind")) + " --body FILE"
		return in.crowdCommand(in.flags(command, "to", "to", "delay", "delay", "job", "job")) + " --yes"
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		if err := in.checkJSON("body"); err != nil {
			return Done{}, err
		}
		job, err := saga.ParseID(in.text("job"))
		if err != nil {
			return Done{}, in.refuse(http.StatusBadRequest, "Job: this is not an id.")
		}
		m := operate.OutgoingMessage{Kind: in.text("kind"), Body: []byte(in.text("body")), To: in.text("to"),
			Delay: in.lasting("delay"), Reason: in.Reason()}
		return d.toCrowd(ctx, in, func(ctx context.Context, f operate.InstanceFilter) (operate.Progress, error) {
			return d.Op.Instances().SendAll(ctx, f, m, operate.ManyOptions{Job: job})
		})
	},
}

var endCrowd = &Action{
	Name: "saga.end.many", Pattern: "/sagas/{saga}/end", Rights: []Right{Repair}, Button: "End all",
	Says: "Ends each of these instances as if it had completed. No handler runs, and Edda cancels the pending " +
		"timeouts.",
	fields: append(append([]field{}, crowd...), whyMust), page: pageOfCrowd,
	check: lookAtCrowd("will be ended",
		"This cannot be undone. Messages already queued for these instances will find no instance."),
	done: "Instances ended: %d. Instances that had ended before: %d. Not changed: %d.",
	command: func(in Input) string {
		return in.crowdCommand(shell("edda saga end", in.text("saga"))) + " --yes"
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		o := operate.ManyOptions{Reason: in.Reason(), Definition: d.o.Definition(in.text("saga"))}
		return d.toCrowd(ctx, in, func(ctx context.Context, f operate.InstanceFilter) (operate.Progress, error) {
			return d.Op.Instances().EndAll(ctx, f, o)
		})
	},
}

// newJob returns the id of a new job that sends to many instances.
func newJob() string { return uuid.Must(uuid.NewV7()).String() }

// mostExported is how many instances a page exports. The command has no limit.
const mostExported = 5000

var exportCrowd = &Action{
	Name: "saga.export", Pattern: "/sagas/{saga}/export", Rights: []Right{Admin}, Button: "Export",
	Says: "Writes a file with a line of JSON for each of these instances, with its state but without secrets. Edda " +
		"leaves out a state if its secret fields are unknown here. The export gets an entry in the audit.",
	fields: append(append([]field{}, crowd...), why), page: pageOfCrowd, done: "The instances were exported.",
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		if !in.Bodies {
			return nil, errStates
		}
		return lookAtCrowd("will be exported", "")(ctx, d, in)
	},
	command: func(in Input) string {
		command := in.flags(shell("edda saga export", in.text("saga")), "prefix", "prefix", "started-before", "until")
		return in.because(command)
	},
	file: func(ctx context.Context, d *Desk, in Input, w io.Writer) error {
		f, err := in.crowd()
		if err != nil {
			return err
		}
		o := operate.ManyOptions{Reason: in.Reason(), Definition: d.o.Definition(in.text("saga")), Max: mostExported}
		_, err = d.Op.Instances().Export(ctx, f, o, func(l persistence.Listed) error {
			text, err := view.Instances([]persistence.Listed{l}, 0).Rows[0].JSON.Line()
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			return err
		})
		return err
	},
}

// errStates refuses an export to an actor who may not see states.
var errStates = &Refusal{Status: http.StatusForbidden, Text: "An export contains states. You also need the right " +
	"Bodies to do this."}

var ofCrowds = []*Action{sendCrowd, endCrowd, exportCrowd}
