package act

import (
	"context"
	"net/url"
	"strconv"

	slots "github.com/edda-go/edda/internal/store/limit"
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
		Says: "Sets how much runs at the same time in all processes together. A lower limit ends no running work: " +
			"new work starts when enough slots are free.",
		fields: []field{of(subject), {name: "most", label: "Limit", kind: number, must: true, least: 1,
			most: slots.Most, example: "4"}, why},
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
		Says:   "Uses the limit that the program declares, now and after the program changes it.",
		fields: []field{of(subject), why}, page: page, done: "The limit was reset to the declaration of the program.",
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
	Name: "lease.resign", Pattern: "/leases/{lease}/resign", Rights: []Right{Limit}, Button: "Release lease",
	Says: "Requests that the holder releases the lease. The holder then waits for a while, so that a different " +
		"process can acquire it. If no other process wants it, the same holder acquires it again.",
	fields: []field{of("lease"), why}, page: pageOfLimits, done: "The release of the lease was requested.",
	command: func(in Input) string { return in.because(shell("edda lease resign", in.text("lease"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Leases.Resign(ctx, in.text("lease"))
	},
}

var ofLimits = []*Action{setLimit, resetLimit, resignLease}
