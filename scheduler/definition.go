package scheduler

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// definition is what manifest.definition holds as JSON: all that decides when a manifest is due. Zeros are left out and
// filled when it is compiled, so that what is stored is what was declared.
type definition struct {
	Rule      rule          `json:"rule"`
	Misfire   Misfire       `json:"misfire,omitzero"`
	MisfireBy time.Duration `json:"misfire_by,omitzero"`
	MisfireUp int           `json:"misfire_up,omitzero"`
	Exclude   []exclusion   `json:"exclude,omitempty"`
	Variance  time.Duration `json:"variance,omitzero"`
	Expires   time.Time     `json:"expires,omitzero"`
}

// definition expects a manifest that passed check.
func (m Manifest) definition() definition {
	d := definition{
		Misfire: m.Misfire, MisfireBy: m.MisfireBy, MisfireUp: m.MisfireUp,
		Variance: m.Variance, Expires: stored(m.Expires),
	}
	if m.When != nil {
		d.Rule = m.When.rule()
		d.Rule.At = stored(d.Rule.At)
	}
	for _, e := range m.Exclude {
		d.Exclude = append(d.Exclude, e.stored())
	}
	return d
}

// stored is t as Postgres keeps it.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Truncate(time.Microsecond).UTC()
}

const (
	longest    = 10 * 366 * 24 * time.Hour
	shortest   = time.Second
	maxExclude = 100

	defaultMisfireBy = time.Minute
	defaultMisfireUp = 1000
	maxMisfireUp     = 1_000_000
	maxVariance      = 24 * time.Hour
)

// plan is a definition that was read. It is never changed, and safe to use from everywhere at once.
type plan struct {
	definition
	location *time.Location
	calendar *calendar // of Cron
	out      []blackout
}

// compile reads a definition. An error names the field and its limit.
func (d definition) compile() (*plan, error) {
	p := &plan{definition: d, location: time.UTC}
	p.Rule.At, p.Expires = d.Rule.At.UTC(), d.Expires.UTC()
	if err := d.checkNumbers(); err != nil {
		return nil, err
	}
	if p.MisfireBy == 0 {
		p.MisfireBy = defaultMisfireBy
	}
	if p.MisfireUp == 0 {
		p.MisfireUp = defaultMisfireUp
	}
	for i, e := range d.Exclude {
		b, err := e.compile()
		if err != nil {
			return nil, fmt.Errorf("Exclude[%d]: %w", i, err)
		}
		p.out = append(p.out, b)
	}
	if err := p.readRule(); err != nil {
		return nil, fmt.Errorf("When: %w", err)
	}
	return p, nil
}

func (d definition) checkNumbers() error {
	switch {
	case d.Misfire > MisfireAll:
		return fmt.Errorf("Misfire: %d: want MisfireOnce, MisfireSkip or MisfireAll", d.Misfire)
	case d.MisfireBy < 0 || d.MisfireBy > longest:
		return fmt.Errorf("MisfireBy: %v: want 0 to %v", d.MisfireBy, longest)
	case d.MisfireUp < 0 || d.MisfireUp > maxMisfireUp:
		return fmt.Errorf("MisfireUp: %d: want 0 to %d", d.MisfireUp, maxMisfireUp)
	case d.Variance < 0 || d.Variance > maxVariance:
		return fmt.Errorf("Variance: %v: want 0 to %v", d.Variance, maxVariance)
	case d.Expires.Year() > maxYear || d.Expires.Year() < 1:
		return fmt.Errorf("Expires: year %d: want 1 to %d", d.Expires.Year(), maxYear)
	case len(d.Exclude) > maxExclude:
		return fmt.Errorf("Exclude: %d exclusions: at most %d", len(d.Exclude), maxExclude)
	}
	return nil
}

const maxYear = 9999 // of JSON, and of what people write

func (p *plan) readRule() error {
	r := p.Rule
	switch r.Kind {
	case cronRule:
		return p.readCron()
	case everyRule:
		if r.Every < shortest || r.Every > longest || r.Every%time.Microsecond != 0 {
			return fmt.Errorf("Every: %v: want %v to %v, in whole microseconds", r.Every, shortest, longest)
		}
		return nil
	case onceRule:
		if r.At.IsZero() || r.At.Year() < 1 || r.At.Year() > maxYear {
			return fmt.Errorf("Once: want a time of the years 1 to %d, not the zero time", maxYear)
		}
		return nil
	case onDemandRule, afterRule, dormantRule:
		if len(p.out) > 0 {
			return errors.New("Exclude: only Cron, Every and Once have due times that can be left out")
		}
		return p.readParent()
	case "":
		return errors.New("it is not set: want Cron, Every, Once, OnDemand, After or Dormant")
	}
	return fmt.Errorf("kind %q is not known to this release", r.Kind)
}

func (p *plan) readParent() error {
	if p.Rule.Kind == onDemandRule {
		return nil
	}
	if err := checkName(p.Rule.Parent); err != nil {
		return fmt.Errorf("name of the manifest before it: %w", err)
	}
	return nil
}

func (p *plan) readCron() (err error) {
	if p.location, err = loadZone(p.Rule.Zone); err != nil {
		return fmt.Errorf("Cron: %w", err)
	}
	if p.calendar, err = parseCron(p.Rule.Expr); err != nil {
		return fmt.Errorf("Cron: %w", err)
	}
	p.calendar.out = p.out
	return nil
}

// zones keeps what was loaded: each load reads a file.
var zones sync.Map

func loadZone(name string) (*time.Location, error) {
	switch name {
	case "":
		return nil, errors.New(`zone is empty: want a name like Europe/Berlin; "UTC" is one`)
	case "Local":
		return nil, errors.New("zone is Local, which differs from server to server: want a name like Europe/Berlin")
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	loaded, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q is unknown here: %w (where the system has no zones, import time/tzdata)", name,
			err)
	}
	zones.Store(name, loaded)
	return loaded, nil
}

// zone is where the manifest's days begin. All but Cron live in UTC.
func (p *plan) zone() *time.Location { return p.location }
