package act

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
)

// Relay returns the forms of a relay. kept reports that it has copies.
func Relay(name string, paused, kept bool) []Form {
	forms := []Form{Pausing(name, paused)}
	if kept {
		forms = append(forms, replay.form(values{"relay", name}))
	}
	return forms
}

// Ring returns the forms of a ring, whose rows are kept for a time.
func Ring(r operate.Ring) []Form {
	v := values{"ring", r.Name, "keep", r.Keep.String()}
	if r.Most > 0 {
		v = append(v, "size", strconv.FormatInt(r.Most, 10))
	}
	return []Form{setKeep.form(v)}
}

func pageOfBorder(Input) string { return "border" }

// mostReplayed is how many messages the pages put back at once: more would take too long for one request.
const mostReplayed = 10_000

var replay = &Action{
	Name: "outbox.replay", Pattern: "/border/{relay}/replay", Rights: []Right{Retry}, Button: "Replay",
	Says: "The relay sends messages again that it has already sent, from the copies that it keeps. A receiver that " +
		"still has the id of a message does not handle it twice.",
	fields: []field{of("relay"),
		{name: "since", label: "Relayed since", kind: past, must: true, example: "2h",
			hint: "a time such as 2026-11-21T10:00:00Z, or an age such as 90m"},
		{name: "until", label: "And before", kind: past, hint: "empty: now"},
		{name: "kind", label: "Kind", kind: line, most: mostName, hint: "empty: all kinds"}, why},
	page: pageOfBorder, done: "Messages queued again: %d.",
	command: func(in Input) string {
		c := shell("edda outbox replay", in.text("relay"))
		return in.because(in.flags(c, "since", "since", "until", "until", "kind", "kind"))
	},
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		now, err := d.now(ctx)
		if err != nil {
			return nil, err
		}
		return d.lookAtReplay(ctx, in.kept(now))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		now, err := d.now(ctx)
		if err != nil {
			return Done{}, err
		}
		return d.replay(ctx, in.kept(now))
	},
}

// kept returns the filter of the chosen copies. It ends now, because messages that are put back are relayed again.
func (in Input) kept(now time.Time) outbox.KeptFilter {
	f := outbox.KeptFilter{Endpoint: in.text("relay"), Kind: in.text("kind"), Since: in.moment("since", now, -1),
		Until: now}
	if in.text("until") != "" {
		f.Until = in.moment("until", now, -1)
	}
	return f
}

// lookAtReplay counts the copies, and shows the first of them.
func (d *Desk) lookAtReplay(ctx context.Context, f outbox.KeptFilter) (*Preview, error) {
	p := &Preview{Final: "This cannot be undone: a message that the other system has received again stays there.",
		keep: map[string]string{
			"since": f.Since.UTC().Format(time.RFC3339Nano), "until": f.Until.UTC().Format(time.RFC3339Nano),
		}}
	for after := (outbox.KeptPlace{}); ; {
		page, err := d.Op.Outbox().ListKept(ctx, d.Pool, f, after, outbox.MaxKept)
		if err != nil {
			return nil, err
		}
		p.Count += int64(len(page.Found))
		for _, k := range page.Found {
			if len(p.Examples) < examplesShown {
				p.Examples = append(p.Examples, Example{Text: fmt.Sprintf("Message %s of kind %s", k.ID, k.Kind)})
			}
		}
		if p.Count > mostReplayed {
			return nil, &Refusal{Status: http.StatusBadRequest, Text: "Nothing was changed: more than " +
				words.Count(mostReplayed) + " messages match. The command edda outbox replay has no limit."}
		}
		if after = page.Next; !page.More {
			break
		}
	}
	if p.Count == 0 {
		return nil, &Refusal{Status: http.StatusNotFound,
			Text: "Nothing was changed: no copy of a message matches."}
	}
	p.Says = []string{words.Of(p.Count, "message") + " of relay " + f.Endpoint + ", relayed from " +
		view.Moment(f.Since) + " until " + view.Moment(f.Until) + ", will be put back into its queue."}
	return p, nil
}

func (d *Desk) replay(ctx context.Context, f outbox.KeptFilter) (Done, error) {
	sum, o := int64(0), operate.ReplayOptions{Filter: f}
	for more := true; more; {
		done, err := d.Op.Replay(ctx, o)
		if err != nil && sum > 0 {
			return Done{}, &Refusal{Status: http.StatusServiceUnavailable, Text: fmt.Sprintf("The replay was "+
				"interrupted. Messages queued again: %d. To continue: edda outbox replay %s --after %s --until %s", sum,
				words.Quoted(f.Endpoint), view.PlaceText(o.After.Relayed.UTC(), o.After.ID),
				f.Until.UTC().Format(time.RFC3339Nano))}
		}
		if err != nil {
			return Done{}, err
		}
		sum += int64(done.Messages)
		o.After, more = done.Place, done.More
	}
	return Done{Numbers: []int64{sum}}, nil
}

var setKeep = &Action{
	Name: "keep.set", Pattern: "/kept/{ring}/keep", Rights: []Right{Admin}, Button: "Set retention",
	Says: "Sets how long Edda keeps the rows: at least this long, and at most a third longer. An empty field changes " +
		"nothing.",
	fields: []field{of("ring"), {name: "keep", label: "Keep for", kind: lasting, hint: "such as 168h"},
		{name: "size", label: "Bytes at most", kind: number, most: 1 << 50,
			hint: "0: no limit. Only the history has this setting"}, why},
	page: pageOfBorder, done: "The retention was set.",
	command: func(in Input) string {
		c := "edda " + in.text("ring") + " keep"
		if keep := in.text("keep"); keep != "" {
			c += " " + words.Quoted(keep)
		}
		return in.because(in.flags(c, "size", "size"))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		most := int64(-1)
		if in.text("size") != "" {
			most = in.number("size")
			if in.text("ring") != "history" {
				return Done{}, in.refuse(http.StatusBadRequest, "Bytes at most: only the history has this setting.")
			}
		}
		return Done{}, d.Op.SetKeep(ctx, in.text("ring"), in.lasting("keep"), most)
	},
}

var ofBorder = []*Action{replay, setKeep}
