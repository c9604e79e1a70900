package act

import (
	"context"
	"net/url"
	"strconv"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
)

func segment(name string) string { return url.PathEscape(name) }

// Limited returns the forms of a limit.
func Limited(l operate.LimitInfo) []Form { return limitsOf(setLimit, resetLimit, "limit", l.Name, &l) }

// Leased returns the forms of a lease.
func Leased(l scheduler.LeaseInfo) []Form {
	if !l.Held || l.Resigning {
		return nil
	}
	return []Form{resignLease.form(values{"lease", l.Name})}
}

func limitsOf(set, reset *Action, of, name string, l *operate.LimitInfo) []Form {
	most := ""
	if l != nil {
		most = strconv.Itoa(l.Limit)
	}
	forms := []Form{set.form(values{of, name, "most", most})}
	if l != nil && l.Operated && l.Declared > 0 {
		forms = append(forms, reset.form(values{of, name}))
	}
	return forms
}

// limiting returns an action that sets the limit named in the field subject.
func limiting(name, pattern, subject string, page func(Input) string) *Action {
	return &Action{
		Name: name, Pattern: pattern, Rights: []Right{Limit}, Button: "Set limit",
		Says: "So much runs at once in all processes together. A lower limit ends nothing that runs: nothing new " +
			"begins until less is left.",
		fields: []field{of(subject), {name: "most", label: "At once", kind: number, must: true, least: 1,
			most: operate.MostLimit, example: "4"}, why},
		page: page, done: "The limit was set.",
		command: func(in Input) string {
			return in.because(shell("edda limit set", in.text(subject), in.text("most")))
		},
		do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
			return Done{}, d.Op.Limits().Set(ctx, in.text(subject), int(in.number("most")))
		},
	}
}

func unlimiting(name, pattern, subject string, page func(Input) string) *Action {
	return &Action{
		Name: name, Pattern: pattern, Rights: []Right{Limit}, Button: "Reset limit",
		Says:   "The limit is what the program declares, and follows it from then on.",
		fields: []field{of(subject), why}, page: page, done: "The limit is what the program declares.",
		command: func(in Input) string { return in.because(shell("edda limit reset", in.text(subject))) },
		do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
			return Done{}, d.Op.Limits().Reset(ctx, in.text(subject))
		},
	}
}

func pageOfLimits(Input) string { return "limits" }

var (
	limitEndpoint   = limiting("endpoint.limit", "/endpoints/{endpoint}/limit", "endpoint", pageOfEndpoint)
	unlimitEndpoint = unlimiting("endpoint.limit.reset", "/endpoints/{endpoint}/limit/reset", "endpoint",
		pageOfEndpoint)
	setLimit   = limiting("limit.set", "/limits/{limit}/set", "limit", pageOfLimits)
	resetLimit = unlimiting("limit.reset", "/limits/{limit}/reset", "limit", pageOfLimits)
)

var resignLease = &Action{
	Name: "lease.resign", Pattern: "/leases/{lease}/resign", Rights: []Right{Limit}, Button: "Resign",
	Says: "Its holder is asked to give it up, and leaves it to others for a while. Without another process it takes " +
		"it again.",
	fields: []field{of("lease"), why}, page: pageOfLimits, done: "The holder of the lease was asked to give it up.",
	command: func(in Input) string { return in.because(shell("edda lease resign", in.text("lease"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Leases.Resign(ctx, in.text("lease"))
	},
}

var ofLimits = []*Action{setLimit, resetLimit, resignLease}
