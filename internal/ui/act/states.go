package act

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	jsonpatch "github.com/evanphx/json-patch/v5"
)

// editable returns JSON for a field: indented, with unprintable characters escaped, so that people edit only visible
// characters.
func editable(text []byte) string {
	if !json.Valid(text) {
		return string(text)
	}
	return view.EscapeLines(view.Body(text))
}

// shown returns a body or a state for people.
func shown(text []byte) string { return view.EscapeLines(view.Body(text)) }

// packed returns JSON without the spaces of an indentation.
func packed(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

// newState returns the state to store: all of it, or the result of a patch on before.
func newState(in Input, before []byte) ([]byte, error) {
	if _, patches := in.values["patch"]; !patches {
		return packed([]byte(in.text("state"))), in.checkJSON("state")
	}
	if err := in.checkJSON("patch"); err != nil {
		return nil, err
	}
	text := in.text("patch")
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, in.refuse(http.StatusBadRequest, "Merge patch: this is not a JSON object.")
	}
	state, err := jsonpatch.MergePatch(before, []byte(text))
	if err != nil {
		return nil, in.refuse(http.StatusBadRequest, "Merge patch: Edda cannot apply it to the state.")
	}
	return state, nil
}

// Diff returns the difference of two states, computed from the texts that may be shown; "" if the states are equal.
func Diff(before, after, shownBefore, shownAfter []byte) string {
	diff := history.Diff(shownBefore, shownAfter)
	if diff == "" && history.Diff(before, after) != "" {
		return "the difference is hidden"
	}
	return diff
}

// lookAtState shows the changes of a repair. If the state has a newer version than the edited one, it is shown.
func lookAtState(ctx context.Context, d *Desk, in Input) (*Preview, error) {
	l, err := living(ctx, d, in)
	if err != nil {
		return nil, err
	}
	i := l.Instance
	if i.Version != in.number("version") {
		in.values["version"] = strconv.FormatInt(i.Version, 10)
		f := in.action.filled(in.values, in.action.fields)
		r := &Refusal{Status: http.StatusConflict, Form: &f, Text: fmt.Sprintf("Nothing was changed: a message has "+
			"changed the instance, which now has version %d. Compare its new state with your text below.", i.Version)}
		if in.Bodies {
			r.Now = shown(d.o.State(i.Saga, i.State))
		}
		return nil, r
	}
	state, err := newState(in, i.State)
	if err != nil {
		return nil, err
	}
	p := one("To undo this, repair the state again. The audit and the history keep the previous state, with secret "+
		"fields masked, if the secret fields are known here.",
		fmt.Sprintf("The state of %s %s will be replaced at version %d.", i.Saga, i.Key, i.Version))
	if in.Bodies {
		before, after := d.o.State(i.Saga, i.State), d.o.State(i.Saga, state)
		p.Examples = []Example{{Text: cmp.Or(Diff(i.State, state, before, after), "no difference"),
			Before: shown(before), After: shown(after)}}
	}
	return p, nil
}

func repairState(ctx context.Context, d *Desk, in Input) (Done, error) {
	l, err := living(ctx, d, in)
	if err != nil {
		return Done{}, err
	}
	state, err := newState(in, l.Instance.State)
	if err != nil {
		return Done{}, err
	}
	_, _, err = d.Op.Instances().Repair(ctx, operate.Target{Saga: in.text("saga"), Key: in.text("key"),
		Version: in.number("version"), Reason: in.Reason(), Definition: d.o.Definition(in.text("saga"))}, state)
	return Done{}, err
}
