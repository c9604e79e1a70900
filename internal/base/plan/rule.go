package plan

import (
	"fmt"
	"time"
)

// Rule determines when a manifest is due. Kind is a constant below; each kind uses the fields that name it.
type Rule struct {
	Kind   string        `json:"kind"`
	Expr   string        `json:"expr,omitempty"` // Cron: five fields, or six with seconds first, or a @name
	Zone   string        `json:"zone,omitempty"` // Cron: an IANA name
	Every  time.Duration `json:"every,omitempty"`
	At     time.Time     `json:"at,omitzero"`      // Once
	Parent string        `json:"parent,omitempty"` // After and Dormant
}

// Kinds of rules.
const (
	Cron     = "cron"
	Every    = "every"
	Once     = "once"
	OnDemand = "on_demand"
	After    = "after"
	Dormant  = "dormant"
)

// String describes the rule in words.
func (r Rule) String() string {
	switch r.Kind {
	case Cron:
		return fmt.Sprintf("cron %s %s", r.Expr, r.Zone)
	case Every:
		return "every " + r.Every.String()
	case Once:
		return "once at " + r.At.UTC().Format(time.RFC3339)
	case OnDemand:
		return "on demand"
	case After:
		return "after " + r.Parent
	case Dormant:
		return "dormant under " + r.Parent
	}
	return r.Kind
}
