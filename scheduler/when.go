package scheduler

import "time"

// When says at which moments a manifest is due. It is sealed: Cron, Every, Once, OnDemand, After and Dormant make one.
type When interface{ rule() rule }

// rule is a When as it is stored in manifest.definition. Kind is one of the constants below.
type rule struct {
	Kind   string        `json:"kind"`
	Expr   string        `json:"expr,omitempty"` // cron: five fields, or six with seconds first, or a @name
	Zone   string        `json:"zone,omitempty"` // cron: an IANA name
	Every  time.Duration `json:"every,omitempty"`
	At     time.Time     `json:"at,omitzero"`
	Parent string        `json:"parent,omitempty"` // after and dormant
}

const (
	cronRule     = "cron"
	everyRule    = "every"
	onceRule     = "once"
	onDemandRule = "on_demand"
	afterRule    = "after"
	dormantRule  = "dormant"
)

func (r rule) rule() rule { return r }

// Cron is due when the wall clock of zone matches expr.
func Cron(expr, zone string) When { return rule{Kind: cronRule, Expr: expr, Zone: zone} }

// Every is due at once when it is declared first, and then each d.
func Every(d time.Duration) When { return rule{Kind: everyRule, Every: d} }

// Once is due at t, one time.
func Once(t time.Time) When { return rule{Kind: onceRule, At: t} }

// OnDemand is due only when somebody triggers it.
func OnDemand() When { return rule{Kind: onDemandRule} }

// After is due each time the manifest of that name succeeded.
func After(manifest string) When { return rule{Kind: afterRule, Parent: manifest} }

// Dormant is due only when a handler of a run of parent activates it, with a message of its own.
func Dormant(parent string) When { return rule{Kind: dormantRule, Parent: parent} }
