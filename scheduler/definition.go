package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
)

// definition expects a manifest that passed check.
func (m Manifest) definition() plan.Definition {
	d := plan.Definition{
		Misfire: plan.Misfire(m.Misfire), MisfireBy: m.MisfireBy, MisfireUp: m.MisfireUp,
		Variance: m.Variance, Expires: plan.Stored(m.Expires),
	}
	if m.When != nil {
		d.Rule = m.When.rule()
		d.Rule.At = plan.Stored(d.Rule.At)
	}
	for _, e := range m.Exclude {
		d.Exclude = append(d.Exclude, e.stored())
	}
	return d
}

func (e Exclusion) stored() plan.Exclusion {
	s := plan.Exclusion{Days: slices.Clone(e.Days)}
	slices.Sort(s.Days)
	s.Days = slices.Compact(s.Days)
	if !e.From.IsZero() {
		s.From = e.From.Format(time.DateOnly)
	}
	if !e.To.IsZero() {
		s.To = e.To.Format(time.DateOnly)
	}
	if e.Of != (Window{}) {
		s.Start, s.End = e.Of.Start.String(), e.Of.End.String()
	}
	return s
}

// String formats t as 15:04:05.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d:%02d", t.Hour, t.Minute, t.Second) }

func (t TimeOfDay) valid() bool {
	return t.Hour >= 0 && t.Hour < 24 && t.Minute >= 0 && t.Minute < 60 && t.Second >= 0 && t.Second < 60
}

// String returns "once", "skip" or "all".
func (m Misfire) String() string { return plan.Misfire(m).String() }

// MarshalText returns the text of String.
func (m Misfire) MarshalText() ([]byte, error) { return plan.Misfire(m).MarshalText() }

// UnmarshalText reads the output of MarshalText.
func (m *Misfire) UnmarshalText(text []byte) error { return (*plan.Misfire)(m).UnmarshalText(text) }
