package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
)

const (
	maxManifestName = 127
	maxPriority     = 31
	maxRetries      = 100
)

// check tells what is wrong with a manifest: the field, and what it may be. A manifest without a fault compiles.
func (m Manifest) check() error {
	if err := checkName(m.Name); err != nil {
		return fmt.Errorf("manifest %q: Name: %w", clip(m.Name), err)
	}
	if err := m.fault(); err != nil {
		return fmt.Errorf("manifest %s: %w", m.Name, err)
	}
	return nil
}

func (m Manifest) fault() error {
	if m.Message == nil {
		return errors.New("Message: it is not set")
	}
	if err := saga.CheckName(m.Message.Kind()); err != nil {
		return fmt.Errorf("Message: kind: %w", err)
	}
	if m.Group != "" {
		if err := checkName(m.Group); err != nil {
			return fmt.Errorf("Group: %w", err)
		}
	}
	if err := m.checkNumbers(); err != nil {
		return err
	}
	d := m.definition()
	if (d.Rule.Kind == afterRule || d.Rule.Kind == dormantRule) && d.Rule.Parent == m.Name {
		return errors.New("When: it names the manifest itself")
	}
	for i, e := range m.Exclude {
		if !e.Of.Start.valid() || !e.Of.End.valid() {
			return fmt.Errorf("Exclude[%d]: Of: want times of day from 00:00:00 to 23:59:59", i)
		}
	}
	_, err := d.compile()
	return err
}

func (m Manifest) checkNumbers() error {
	switch {
	case m.Timeout != 0 && m.Timeout != NoTimeout && (m.Timeout < time.Second || m.Timeout > longest):
		return fmt.Errorf("Timeout: %v: want 0, %v to %v, or NoTimeout", m.Timeout, time.Second, longest)
	case m.Retries < -1 || m.Retries > maxRetries:
		return fmt.Errorf("Retries: %d: want -1 to %d", m.Retries, maxRetries)
	case m.RetryDelay < 0 || m.RetryDelay > longest:
		return fmt.Errorf("RetryDelay: %v: want 0 to %v", m.RetryDelay, longest)
	case m.RetryMost < 0 || m.RetryMost > longest:
		return fmt.Errorf("RetryMost: %v: want 0 to %v", m.RetryMost, longest)
	case m.Priority < 0 || m.Priority > maxPriority:
		return fmt.Errorf("Priority: %d: want 0 to %d", m.Priority, maxPriority)
	}
	return nil
}

// filled is the manifest with the defaults of Timeout, Retries, RetryDelay and RetryMost in place of zeros. Retries -1
// becomes 0.
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
	if m.RetryMost == 0 {
		m.RetryMost = max(time.Hour, m.RetryDelay)
	}
	return m
}

// checkName is the rule for names of manifests and groups: [a-z][a-z0-9_./-]{0,126}.
func checkName(name string) error {
	ok := name != "" && len(name) <= maxManifestName && name[0] >= 'a' && name[0] <= 'z'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-'
	}
	if !ok {
		return fmt.Errorf("name of %d bytes: want 1 to %d of a-z, 0-9, dot, dash, slash and underscore, beginning "+
			"with a letter", len(name), maxManifestName)
	}
	return nil
}

func clip(s string) string {
	if len(s) > maxManifestName {
		return s[:maxManifestName] + "…"
	}
	return s
}
