package act

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

// Letter returns the forms of a dead letter. body is the text to edit: nil if it may not be shown, or if a part of it
// is masked or left out.
func Letter(l recoverability.Letter, body []byte) []Form {
	number := values{"number", strconv.FormatInt(l.Number, 10)}
	return []Form{
		retryLetter.form(number), editLetter.form(append(number, "body", editable(body))), discardLetter.form(number),
	}
}

func pageOfDead(Input) string { return "dead" }

func pageOfLetter(in Input) string { return "dead/" + segment(in.text("number")) }

var retryLetter = &Action{
	Name: "dead.retry", Pattern: "/dead/{number}/retry", Rights: []Right{Retry}, Button: "Retry",
	Says: "Puts the message back into its queue and counts its attempts from zero. If it fails again, it becomes a " +
		"dead letter again.",
	fields: []field{of("number"), to, why}, page: pageOfLetter, done: "The dead letter was retried.",
	command: func(in Input) string {
		return in.because(in.flags(shell("edda dead retry", in.text("number")), "to", "to"))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		l, err := d.letters().Show(ctx, in.number("number"))
		if err != nil {
			return Done{}, err
		}
		err = d.letters().RetryTo(ctx, l.Number, in.text("to"))
		return Done{Page: "messages/" + l.MessageID.String()}, err
	},
}

var editLetter = &Action{
	Name: "dead.edit", Pattern: "/dead/{number}/edit", Rights: []Right{Edit}, Button: "Edit and retry",
	Says: "Changes the body or the headers of the message, and puts it back into its queue. The table " +
		"dead_letter_edit keeps the original.",
	fields: []field{of("number"),
		{name: "body", label: "Body", kind: area, most: deadletter.MaxBody, hint: "empty: the body stays as it is"},
		{name: "raw", label: "Accept a body that is not JSON", kind: tick, most: 10},
		{name: "set", label: "Headers to set", kind: area, most: mostReason, hint: "NAME=VALUE, one in each line"},
		{name: "remove", label: "Headers to remove", kind: area, most: mostReason, hint: "NAME, one in each line"},
		{name: "new_id", label: "Give the message a new id, so that receivers treat it as a different message",
			kind: tick, most: 10}, why},
	page: pageOfLetter, done: "The dead letter was edited and retried.",
	command: func(in Input) string {
		c := shell("edda dead edit", in.text("number"))
		if in.text("body") != "" {
			c += " --body FILE"
		}
		set, remove, _ := headersOf(in)
		for _, header := range set {
			c += shell(" --set", header)
		}
		for _, name := range remove {
			c += shell(" --remove", name)
		}
		if in.ticked("raw") {
			c += " --raw"
		}
		if in.ticked("new_id") {
			c += " --new-id"
		}
		return in.because(c)
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		l, err := d.letters().Show(ctx, in.number("number"))
		if err != nil {
			return Done{}, err
		}
		e, err := editOf(in, l)
		if err != nil {
			return Done{}, err
		}
		id := l.MessageID
		if !e.ID.IsZero() {
			id = e.ID
		}
		return Done{Page: "messages/" + id.String()}, d.letters().Edit(ctx, l.Number, e)
	},
}

// headersOf returns the lines of the two fields for headers.
func headersOf(in Input) (set, remove []string, fault string) {
	lines := func(name string) (all []string) {
		for text := range strings.SplitSeq(in.text(name), "\n") {
			if text = strings.TrimSpace(text); text != "" {
				all = append(all, text)
			}
		}
		return all
	}
	set, remove = lines("set"), lines("remove")
	for n, header := range set {
		if name, _, ok := strings.Cut(header, "="); !ok || name == "" {
			fault = fmt.Sprintf("Headers to set: header %d is not of the form NAME=VALUE.", n+1)
		}
	}
	return set, remove, fault
}

// editOf reads the change of a dead letter.
func editOf(in Input, l recoverability.Letter) (e recoverability.Edit, err error) {
	e = recoverability.Edit{JSON: !in.ticked("raw"), Set: map[string]string{}, Reason: in.Reason()}
	set, remove, fault := headersOf(in)
	if fault != "" {
		return e, in.refuse(http.StatusBadRequest, fault)
	}
	for _, header := range set {
		name, value, _ := strings.Cut(header, "=")
		e.Set[name] = value
	}
	e.Remove = remove
	if body := in.text("body"); body != "" {
		if e.Body = []byte(body); e.JSON {
			if err := in.checkJSON("body"); err != nil {
				return e, err
			}
			e.Body = packed(e.Body)
		}
	}
	if in.ticked("new_id") {
		id, err := uuid.NewV7()
		if err != nil {
			return e, fmt.Errorf("make an id: %w", err)
		}
		e.ID = saga.ID(id)
	}
	same := e.Body == nil || string(e.Body) == string(packed(l.Body))
	if same && len(e.Set)+len(e.Remove) == 0 && e.ID.IsZero() {
		return e, in.refuse(http.StatusBadRequest, "You have changed neither the body nor a header. To send the "+
			"message as it is, use Retry.")
	}
	for name := range e.Set {
		if strings.HasPrefix(strings.ToLower(name), "edda-") {
			return e, in.refuse(http.StatusBadRequest,
				"Headers to set: only the bus sets headers that begin with edda-.")
		}
	}
	return e, nil
}

var discardLetter = &Action{
	Name: "dead.discard", Pattern: "/dead/{number}/discard", Rights: []Right{Discard}, Button: "Discard",
	Says:   "Ends the message without handling it. Edda keeps the reason for 30 days.",
	fields: []field{of("number"), whyMust}, page: pageOfDead, done: "The dead letter was discarded.",
	command: func(in Input) string { return in.because(shell("edda dead discard", in.text("number"))) },
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		l, err := d.letters().Show(ctx, in.number("number"))
		if err != nil {
			return nil, err
		}
		p := one("This cannot be undone: Edda deletes the body at once.",
			fmt.Sprintf("Dead letter %d of endpoint %s, of kind %s, will be discarded.", l.Number, l.Endpoint, l.Kind))
		p.Examples = []Example{d.example(in, l, l.Body, nil)}
		return p, nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.letters().Discard(ctx, in.number("number"), in.Reason())
	},
}

// example returns a letter for a preview, with bodies only if the actor may see them.
func (d *Desk) example(in Input, l recoverability.Letter, before, after []byte) Example {
	e := Example{Text: fmt.Sprintf("Dead letter %d: %s", l.Number, l.Error)}
	if in.Bodies && before != nil {
		e.Before = shown(d.o.Body(l.Kind, before))
	}
	if in.Bodies && after != nil {
		e.After = shown(d.o.Body(l.Kind, after))
	}
	return e
}

var ofLetters = []*Action{retryLetter, editLetter, discardLetter}
