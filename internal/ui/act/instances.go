package act

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
)

// Seen is a living instance as shown on a page.
type Seen struct {
	Saga, Key string
	Version   int64
	State     []byte // nil if it may not be shown, or if a part of it is masked
	Over      bool   // it has completed, and its row is only remembered
}

// Instance returns the forms of a living instance.
func Instance(s Seen) []Form {
	of, version := values{"saga", s.Saga, "key", s.Key}, strconv.FormatInt(s.Version, 10)
	forms := []Form{sendInstance.form(of)}
	if s.Over {
		return nil
	}
	if s.State != nil {
		forms = append(forms, repair.form(append(of, "version", version, "state", editable(s.State))))
	} else {
		forms = append(forms, patch.form(append(of, "version", version)))
	}
	return append(forms, end.form(append(of, "version", version)))
}

// pageOfInstance returns the address of the page of an instance, relative to the first page.
func pageOfInstance(in Input) string {
	return "instance?saga=" + url.QueryEscape(in.text("saga")) + "&key=" + url.QueryEscape(in.text("key"))
}

var instance = []field{of("saga"), which("key")}

// about returns a command about an instance.
func (in Input) about(command string) string { return shell(command, in.text("saga"), in.text("key")) }

// living reads the instance.
func living(ctx context.Context, d *Desk, in Input) (persistence.Listed, error) {
	l, ok, err := d.Op.Instances().Show(ctx, in.text("saga"), in.text("key"))
	if err == nil && !ok {
		err = operate.ErrNoInstance
	}
	return l, err
}

var sendInstance = &Action{
	Name: "saga.send", Pattern: "/instance/send", Rights: []Right{Send}, Button: "Send a message",
	Says: "Sends a message to this instance, even if the body contains a different key. The effects of the handler " +
		"cannot be undone.",
	fields: append(append([]field{}, instance...), append([]field{{name: "to", label: "Endpoint", kind: line,
		most: mostName, hint: "only for a kind that no endpoint consumes, such as the kind of a reply"}},
		letterOf...)...),
	page: pageOfInstance, done: "The message was sent.",
	command: func(in Input) string {
		return in.flags(sendCommand(in), "to", "to") + " --instance " +
			words.Quoted(in.text("saga")+"/"+in.text("key"))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return d.send(ctx, in, operate.OutgoingMessage{To: in.text("to"), Saga: in.text("saga"), Key: in.text("key")})
	},
}

var repair = &Action{
	Name: "saga.repair", Pattern: "/instance/repair", Rights: []Right{Repair}, Button: "Repair state",
	Says: "Replaces the state. No handler runs. If a message has changed the instance since this page was read, Edda " +
		"changes nothing.",
	fields: append(append([]field{}, instance...), field{name: "version", label: "Version", kind: hidden, must: true,
		most: 30, example: "1"}, field{name: "state", label: "State", kind: area, must: true, most: mostText}, whyMust),
	page: pageOfInstance, done: "The state was repaired.",
	command: func(in Input) string {
		return in.because(in.flags(in.about("edda saga repair"), "version", "version") + " --state FILE --yes")
	},
	check: lookAtState, do: repairState,
}

var patch = &Action{
	Name: "saga.patch", Pattern: "/instance/patch", Rights: []Right{Repair}, Button: "Repair state",
	Says: "Applies a JSON merge patch to the state: it replaces the members that it names, removes a member whose " +
		"value is null, and keeps all others, including the members that this page hides. No handler runs. If a " +
		"message has changed the instance since this page was read, Edda changes nothing.",
	fields: append(append([]field{}, instance...), field{name: "version", label: "Version", kind: hidden, must: true,
		most: 30, example: "1"}, field{name: "patch", label: "Merge patch", kind: area, must: true, most: mostText,
		hint: `such as {"Paid": true}`}, whyMust),
	page: pageOfInstance, done: "The state was repaired.",
	command: func(in Input) string {
		return in.because(in.flags(in.about("edda saga repair"), "version", "version") + " --state FILE --yes")
	},
	check: lookAtState, do: repairState,
}

var end = &Action{
	Name: "saga.end", Pattern: "/instance/end", Rights: []Right{Repair}, Button: "End instance",
	Says:   "Ends the instance as if it had completed. No handler runs, and Edda cancels its pending timeouts.",
	fields: append(append([]field{}, instance...), seen, whyMust),
	page:   pageOfInstance, done: "The instance was ended.",
	command: func(in Input) string {
		return in.because(in.flags(in.about("edda saga end"), "version", "version") + " --yes")
	},
	check: func(ctx context.Context, d *Desk, in Input) (*Preview, error) {
		l, err := living(ctx, d, in)
		if err != nil {
			return nil, err
		}
		i := l.Instance
		p := one("This cannot be undone. Messages already queued for this instance will find no instance.",
			fmt.Sprintf("Instance %s %s will end at version %d. Pending timeouts that will be cancelled: %d.", i.Saga,
				i.Key, i.Version, len(i.Pending)))
		if in.Bodies {
			p.Examples = []Example{{Text: "Its state", Before: shown(d.o.State(i.Saga, i.State))}}
		}
		p.keep = map[string]string{"version": strconv.FormatInt(i.Version, 10)}
		return p, nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		_, err := d.Op.Instances().End(ctx, operate.Target{Saga: in.text("saga"), Key: in.text("key"),
			Version: in.number("version"), Reason: in.Reason(), Definition: d.o.Definition(in.text("saga"))})
		return Done{}, err
	},
}

var ofInstances = []*Action{sendInstance, repair, patch, end}
