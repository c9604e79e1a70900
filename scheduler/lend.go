package scheduler

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/planning"
)

// It is set when the package is linked, before anything can ask.
var _ = planning.Lend(lend)

// lend gives the decisions to schedulertest.
func lend(manifest any) (planning.Plan, error) {
	m, ok := manifest.(Manifest)
	if !ok {
		return planning.Plan{}, fmt.Errorf("%T is no manifest", manifest)
	}
	if err := m.check(); err != nil {
		return planning.Plan{}, err
	}
	p, err := m.definition().compile()
	if err != nil {
		return planning.Plan{}, fmt.Errorf("manifest %s: %w", m.Name, err)
	}
	m = m.filled()
	if m.Timeout == NoTimeout {
		m.Timeout = 0
	}
	return planning.Plan{
		First:  p.first,
		Jitter: p.jitter,
		Decide: func(due, now time.Time) planning.Verdict {
			v := p.decide(due, now)
			return planning.Verdict{Fire: v.fire, Next: v.next}
		},
		Parent: p.Rule.Parent, Follows: p.Rule.Kind == afterRule,
		Retries: m.Retries, RetryDelay: m.RetryDelay, RetryMost: m.RetryMost, Timeout: m.Timeout,
	}, nil
}
