package sagatest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/saga"
)

// format formats the result of one delivery: the instance, the sent messages, and the fate of the message.
func (r script) format(h happened) string {
	var out strings.Builder
	if h.in.Info.Due.After(r.now) {
		fmt.Fprintf(&out, "waits %v\n", h.in.Info.Due.Sub(r.now))
		return out.String()
	}
	if h.saved {
		r.formatInstance(&out, h)
	}
	for _, o := range h.out.Out {
		fmt.Fprintf(&out, "  %s\n", r.formatMessage(o, h.after))
	}
	for _, c := range h.out.Cancelled {
		fmt.Fprintf(&out, "  cancels %s\n", r.timer(pendingByID(h.before, c.ID)))
	}
	fmt.Fprintf(&out, "%s\n", strings.ReplaceAll(end(h), "\n", "; "))
	return out.String()
}

func (r script) formatInstance(out *strings.Builder, h happened) {
	i := h.after
	what := map[Op]string{
		Check:            fmt.Sprintf("unchanged, version %d", i.Version),
		Update:           fmt.Sprintf("version %d", i.Version),
		Start:            fmt.Sprintf("new, version %d", i.Version),
		Complete:         "complete",
		StartAndComplete: "new and complete",
	}
	text := what[h.op]
	if until := i.RememberedUntil(); !until.IsZero() && h.out.Completed {
		text += fmt.Sprintf(", complete, remembered for %v", until.Sub(r.now))
	}
	fmt.Fprintf(out, "%s/%s: %s\n", i.Saga, i.Key, text)
	if h.op != Check && !bytes.Equal(i.State, h.before.State) {
		fmt.Fprintf(out, "  state %s\n", i.State)
	}
}

func (r script) formatMessage(o saga.Outgoing, i saga.Instance) string {
	text := fmt.Sprintf("%v %s %s", o.Info.Intent, o.Info.Kind, o.Body)
	if o.Info.Intent == saga.Timer {
		text = fmt.Sprintf("after %v: %s", o.Info.Due.Sub(r.now), o.Info.Kind)
		if p := pendingByID(i, o.Info.ID); p.Name != "" {
			text += fmt.Sprintf(" %q", p.Name)
		}
	} else if !o.Info.Due.IsZero() {
		text += fmt.Sprintf(" after %v", o.Info.Due.Sub(r.now))
	}
	if o.To != "" {
		text += " to " + o.To
	}
	for name, value := range o.Info.Headers() {
		text += fmt.Sprintf(" %s=%q", name, value)
	}
	return text
}

func (r script) timer(p saga.Pending) string {
	text := p.Kind
	if p.Name != "" {
		text += fmt.Sprintf(" %q", p.Name)
	}
	return fmt.Sprintf("%s due in %v", text, p.Due.Sub(r.now))
}

func pendingByID(i saga.Instance, id saga.ID) saga.Pending {
	for _, p := range i.Pending {
		if p.ID == id {
			return p
		}
	}
	return saga.Pending{Kind: id.String()}
}

// end returns the last line of a block: the fate of the message.
func end(h happened) string {
	var permanent *saga.PermanentError
	var after *saga.RetryAfterError
	err := h.out.Err
	switch {
	case h.out.Discard != "":
		return "discard: " + h.out.Discard
	case errors.As(err, &permanent):
		return "dead letter: " + err.Error()
	case errors.As(err, &after):
		return err.Error()
	case err != nil:
		return "fail: " + err.Error()
	case h.none && h.policy == saga.MissingRetry:
		return "retry: no instance"
	case h.none:
		return "dead letter: no instance"
	}
	return "ack"
}
