package act

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/recoverability"
)

// Group returns the forms of a group of dead letters, which has a note.
func Group(name, note string) []Form {
	return append(many(values{"group", name}), noteGroup.form(values{"group", name, "note", note}))
}

// Letters returns the forms of the dead letters of an endpoint and a kind; "" means any.
func Letters(endpoint, kind string) []Form { return many(values{"endpoint", endpoint, "kind", kind}) }

func many(of values) []Form {
	return []Form{retryMany.form(of), patchMany.form(of), discardMany.form(of)}
}

// chosen are the fields that choose letters. Without a value they choose all letters.
var chosen = []field{which("group"), which("endpoint"), which("kind"),
	{name: "until", label: "Until", kind: hidden, most: 60}}

var way = field{name: "way", label: "Way", kind: choice, choices: []string{"canary", "all at once"}, must: true,
	example: "canary", hint: "a canary works in stages of 1, 5, 25, 125 and more letters, and pauses if more than a " +
		"tenth of a stage fails again"}

// filter returns the filter of the chosen letters. It leaves out letters that died after the preview.
func (in Input) filter() recoverability.LetterFilter {
	f := recoverability.LetterFilter{Group: in.text("group"), Endpoint: in.text("endpoint"), Kind: in.text("kind")}
	f.DiedBefore, _ = time.Parse(time.RFC3339, in.text("until"))
	return f
}

// manyCommand returns a command for the chosen letters.
func (in Input) manyCommand(command string) string {
	command = in.flags(command, "group", "group", "endpoint", "endpoint", "kind", "kind", "until", "until")
	if in.text("group")+in.text("endpoint")+in.text("kind")+in.text("until") == "" {
		command += " --all"
	}
	if in.number("rate") > 0 {
		command = in.flags(command, "rate", "rate")
	}
	if command = in.flags(command, "to", "to"); in.text("way") == "canary" {
		command += " --canary"
	}
	return in.because(command) + " --yes"
}

func pageOfMany(in Input) string {
	if group := in.text("group"); group != "" {
		return "dead/groups/" + segment(group)
	}
	return "dead"
}

// job returns the job that runs the action on the letters.
func (in Input) job(action recoverability.JobAction) recoverability.Job {
	j := recoverability.Job{Action: action, Filter: in.filter(), Rate: float64(in.number("rate")), Reason: in.Reason(),
		To: in.text("to")}
	if in.text("way") == "canary" {
		j.Plan = deadletter.Canary()
	}
	return j
}

// begin stores a job, and runs it.
func (d *Desk) begin(ctx context.Context, j recoverability.Job) (Done, error) {
	number, err := d.letters().NewJob(ctx, j)
	if err != nil {
		return Done{}, err
	}
	d.Jobs.Run(number)
	return Done{Page: "jobs/" + strconv.FormatInt(number, 10)}, nil
}

const examplesShown = 3

// lookAtMany counts the chosen letters, and shows the first of them.
func lookAtMany(what, final string) func(context.Context, *Desk, Input) (*Preview, error) {
	return func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		p, err := d.count(ctx, &in, what)
		if err != nil {
			return nil, err
		}
		if p.Final = final; final == "" {
			p.Says = append(p.Says, "You can undo this on the page of the job, for messages that still wait then.")
		}
		f := in.filter()
		f.Limit = examplesShown
		letters, err := d.letters().List(ctx, f)
		for _, l := range letters {
			p.Examples = append(p.Examples, d.example(in, l, nil, nil))
		}
		return p, err
	}
}

// count counts the letters that died until now, or until the preview.
func (d *Desk) count(ctx context.Context, in *Input, what string) (*Preview, error) {
	if in.filter().DiedBefore.IsZero() {
		now, err := d.now(ctx)
		if err != nil {
			return nil, err
		}
		in.values["until"] = now.Format(time.RFC3339Nano)
	}
	p := &Preview{}
	var err error
	if p.Count, err = d.letters().Count(ctx, in.filter()); err != nil {
		return nil, err
	}
	if p.Count == 0 {
		return nil, &Refusal{Status: http.StatusNotFound, Text: "Nothing was changed: no dead letter matches."}
	}
	text := words.Of(p.Count, "dead letter")
	if p.Count >= deadletter.CountLimit {
		text += " or more"
	}
	p.Says = []string{text + in.which() + " " + what + "."}
	if rate := in.number("rate"); rate > 0 {
		p.Says = append(p.Says, "At "+words.Of(rate, "letter")+" a second this takes "+
			words.Span(time.Duration(p.Count/rate)*time.Second)+".")
	}
	return p, nil
}

// which describes which letters are chosen.
func (in Input) which() (text string) {
	for _, name := range []string{"group", "endpoint", "kind"} {
		if value := in.text(name); value != "" {
			text += " of " + name + " " + value
		}
	}
	if text == "" {
		return " of all endpoints"
	}
	return text
}

var retryMany = &Action{
	Name: "dead.retry.many", Pattern: "/dead/retry", Rights: []Right{Retry}, Button: "Retry all",
	Says:   "Starts a job that puts the messages back into their queues and counts their attempts from zero.",
	fields: append(append([]field{}, chosen...), way, rate, to, why), page: pageOfMany,
	done: "The job was started.", check: lookAtMany("will be retried", ""),
	command: func(in Input) string { return in.manyCommand("edda dead retry") },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return d.begin(ctx, in.job(recoverability.JobRetry))
	},
}

var discardMany = &Action{
	Name: "dead.discard.many", Pattern: "/dead/discard", Rights: []Right{Discard}, Button: "Discard all",
	Says:   "Starts a job that ends the messages without handling them. Edda keeps the reason for 30 days.",
	fields: append(append([]field{}, chosen...), rate, whyMust), page: pageOfMany, done: "The job was started.",
	check:   lookAtMany("will be discarded", "This cannot be undone: Edda deletes the bodies at once."),
	command: func(in Input) string { return in.manyCommand("edda dead discard") },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return d.begin(ctx, in.job(recoverability.JobDiscard))
	},
}

var patchMany = &Action{
	Name: "dead.edit.many", Pattern: "/dead/edit", Rights: []Right{Edit}, Button: "Change all and retry",
	Says: "Starts a job that applies one JSON merge patch to the bodies and retries the messages. A letter whose " +
		"body is not JSON stays a dead letter.",
	fields: append(append([]field{}, chosen...), field{name: "patch", label: "Merge patch", kind: area, must: true,
		most: mostText, hint: `such as {"Currency": "EUR", "Total": null}; null removes a member`}, way, rate, to, why),
	page: pageOfMany, done: "The job was started.",
	command: func(in Input) string { return in.manyCommand("edda dead edit --patch FILE") },
	check:   lookAtPatch,
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		j := in.job(recoverability.JobRetry)
		j.Patch = []byte(in.text("patch"))
		return d.begin(ctx, j)
	},
}

// lookAtPatch shows the first letters before and after a patch.
func lookAtPatch(ctx context.Context, d *Desk, in Input) (*Preview, error) {
	if err := in.checkJSON("patch"); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(strings.TrimSpace(in.text("patch")), "{") {
		return nil, in.refuse(http.StatusBadRequest, "Merge patch: this is not a JSON object.")
	}
	p, err := d.count(ctx, &in, "will be changed and retried")
	if err != nil {
		return nil, err
	}
	p.Final = "This cannot be undone. The table dead_letter_edit keeps the original bodies."
	f := in.filter()
	f.Limit = examplesShown
	previews, err := d.letters().Preview(ctx, f, []byte(in.text("patch")))
	for _, v := range previews {
		e := d.example(in, v.Letter, v.Letter.Body, v.Body)
		if v.Err != nil {
			e.Error = "It would stay a dead letter: " + v.Err.Error()
		}
		p.Examples = append(p.Examples, e)
	}
	return p, err
}

var noteGroup = &Action{
	Name: "dead.note", Pattern: "/dead/groups/{group}/note", Rights: []Right{Retry, Edit, Discard}, Button: "Edit note",
	Says: "Sets the note of this group, for everyone who may see these pages. An empty text deletes it.",
	fields: []field{of("group"), {name: "note", label: "Note", kind: area, most: deadletter.MostNote,
		hint: "such as the cause, the ticket, the person who works on it"}, why},
	page: pageOfMany, done: "The note was saved.",
	command: func(in Input) string {
		return in.because(shell("edda dead note", in.text("group"), cmp.Or(in.text("note"), "TEXT")))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.letters().SetNote(ctx, in.text("group"), strings.TrimSpace(in.text("note")))
	},
}

var ofManyLetters = []*Action{retryMany, patchMany, discardMany, noteGroup}
