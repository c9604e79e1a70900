package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// auditPage is the page of operators' changes.
type auditPage struct {
	Head
	By, Verb, Target, Since string // of the filter
	Entries                 []auditRow
	After                   string // continue after this entry, "" at the end

	shown view.Object
}

// auditRow is one change.
type auditRow struct {
	operate.AuditEntry
	Change string
	Link   string // to the changed thing, "" if it has no page
}

// JSON returns the output of the command.
func (p *auditPage) JSON() any { return p.shown }

// Filtered reports whether there is a filter.
func (p *auditPage) Filtered() bool { return p.By+p.Verb+p.Target+p.Since != "" }

const entriesShown = 100

// Changes reads the audit, the newest entry first.
func (s *Source) Changes(ctx context.Context, a Ask) (Page, error) {
	p := &auditPage{By: a.Query.Get("by"), Verb: a.Query.Get("verb"), Target: a.Query.Get("target"),
		Since: a.Query.Get("since")}
	p.Head = head("audit", "Audit", command("edda audit", "by", p.By, "verb", p.Verb, "target", p.Target, "since",
		p.Since))
	after, err := numberOf(a.Query.Get("after"))
	if err != nil {
		return nil, err
	}
	since, err := view.ReadTime(p.Since, time.Now())
	if err != nil {
		return nil, wrong(fmt.Sprintf("Since %s: %v.", view.Escape(view.Shortened(p.Since, 40)), err))
	}
	all, err := s.Op.Audit(ctx, operate.AuditFilter{By: p.By, Verb: p.Verb, Target: p.Target, Since: since,
		Before: after, Limit: entriesShown})
	if err != nil {
		return nil, err
	}
	for n := range all {
		e := &all[n]
		e.Before, e.After = changedOf(s, a, e, e.Before), changedOf(s, a, e, e.After)
		p.Entries = append(p.Entries, auditRow{*e, view.Change(e.Before, e.After), linkOf(e.Verb, e.Target)})
	}
	listed := view.Audit(all, entriesShown)
	p.After, p.shown = listed.Next, listed.View().JSON
	return p, nil
}

// changedOf returns a changed value as it may be shown: states, patches and bodies are masked, and only shown to
// people who may see bodies.
func changedOf(s *Source, a Ask, e *operate.AuditEntry, value json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return value
	}
	touched, kind := false, ""
	_ = json.Unmarshal(members["kind"], &kind) // of many kinds: there is no kind
	for _, name := range []string{"state", "patch", "body"} {
		if members[name] == nil {
			continue
		}
		touched = true
		switch of, _, ok := strings.Cut(e.Target, "/"); {
		case !a.Bodies:
			delete(members, name)
		case name != "state":
			members[name] = patchOf(s, a, kind, members[name])
		case ok:
			members[name] = s.State(of, members[name])
		}
	}
	if !touched {
		return value
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil // Redact has returned text that is no JSON
	}
	return text
}

// linkOf returns the page of the target of a verb.
func linkOf(verb, target string) string {
	thing, what, _ := strings.Cut(verb, ".")
	switch thing {
	case "endpoint", "history":
		if saga.CheckName(target) == nil {
			return "endpoints/" + segment(target)
		}
	case "limit", "lease":
		return "limits"
	case "manifest":
		if what != "declare" && what != "remove" { // neither an owner nor a deleted thing has a page
			return "manifests/" + segment(target)
		}
	case "run":
		return "runs/" + segment(target)
	case "saga", "timeout":
		if name, key, ok := strings.Cut(target, "/"); ok {
			return Instance(name, key)
		}
	case "message":
		return "messages/" + segment(target)
	}
	return ""
}

// AuditOf returns the address of the changes of one target, by the verbs of a thing; "" means any.
func AuditOf(thing, target string) string {
	query := url.Values{}
	for name, value := range map[string]string{"verb": thing, "target": target} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "audit?" + query.Encode()
}
