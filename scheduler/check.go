package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
)

const (
	clipped     = 127 // bytes of a name in an error
	maxPriority = 31
	maxRetries  = 100
)

// compile checks a manifest and returns its plan. An error names the manifest, the field and its valid values.
func (m Manifest) compile() (*plan.Plan, error) {
	if err := plan.CheckName(m.Name); err != nil {
		return nil, fmt.Errorf("manifest %q: Name: %w", clip(m.Name), err)
	}
	err := m.check()
	if err == nil {
		var p *plan.Plan
		if p, err = m.definition().Compile(); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("manifest %s: %w", m.Name, err)
}

// check checks everything except the name and the definition.
func (m Manifest) check() error {
	if m.Message == nil {
		return errors.New("Message: it is not set")
	}
	if err := saga.CheckName(m.Message.Kind()); err != nil {
		return fmt.Errorf("Message: kind: %w", err)
	}
	if m.Group != "" {
		if err := plan.CheckName(m.Group); err != nil {
			return fmt.Errorf("Group: %w", err)
		}
	}
	if err := m.checkNumbers(); err != nil {
		return err
	}
	if rule := m.definition().Rule; (rule.Kind == plan.After || rule.Kind == plan.Dormant) && rule.Parent == m.Name {
		return errors.New("When: it names the manifest itself")
	}
	for i, e := range m.Exclude {
		if !e.Of.Start.valid() || !e.Of.End.valid() {
			return fmt.Errorf("Exclude[%d]: Of: want times of day from 00:00:00 to 23:59:59", i)
		}
	}
	return nil
}

func (m Manifest) checkNumbers() error {
	switch {
	case m.Timeout != 0 && m.Timeout != NoTimeout && (m.Timeout < time.Second || m.Timeout > plan.Longest):
		return fmt.Errorf("Timeout: %v: want 0, %v to %v, or NoTimeout", m.Timeout, time.Second, plan.Longest)
	case m.Retries < -1 || m.Retries > maxRetries:
		return fmt.Errorf("Retries: %d: want -1 to %d", m.Retries, maxRetries)
	case m.RetryDelay < 0 || m.RetryDelay > plan.Longest:
		return fmt.Errorf("RetryDelay: %v: want 0 to %v", m.RetryDelay, plan.Longest)
	case m.MaxRetryDelay < 0 || m.MaxRetryDelay > plan.Longest:
		return fmt.Errorf("MaxRetryDelay: %v: want 0 to %v", m.MaxRetryDelay, plan.Longest)
	case m.Priority < 0 || m.Priority > maxPriority:
		return fmt.Errorf("Priority: %d: want 0 to %d", m.Priority, maxPriority)
	}
	return nil
}

// filled returns the manifest with the defaults of Timeout, Retries, RetryDelay and MaxRetryDelay; Retries -1 becomes
// 0.
func (m Manifest) filled() Manifest {
	if m.Timeout == 0 {
		m.Timeout = 20 * time.Minute
	}
	switch m.Retries {
	case 0:
		m.Retries = 3
	case -1:
		m.Retries = 0
	}
	if m.RetryDelay == 0 {
		m.RetryDelay = 5 * time.Minute
	}
	if m.MaxRetryDelay == 0 {
		m.MaxRetryDelay = max(time.Hour, m.RetryDelay)
	}
	return m
}

func clip(s string) string {
	if len(s) > clipped {
		return s[:clipped] + "…"
	}
	return s
}
