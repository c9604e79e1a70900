package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Definition is the JSON of the column manifest.definition: everything that decides when a manifest is due. Zeros are
// left out, and Compile fills in their defaults, so the column holds the declared values.
type Definition struct {
	Rule      Rule          `json:"rule"`
	Misfire   Misfire       `json:"misfire,omitzero"`
	MisfireBy time.Duration `json:"misfire_by,omitzero"`
	MisfireUp int           `json:"misfire_up,omitzero"`
	Exclude   []Exclusion   `json:"exclude,omitempty"`
	Variance  time.Duration `json:"variance,omitzero"`
	Expires   time.Time     `json:"expires,omitzero"`
}

// Stored returns t as Postgres stores it: in UTC, in whole microseconds.
func Stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Truncate(time.Microsecond).UTC()
}

// Longest is the longest duration of a manifest: an interval, a timeout, a delay.
const Longest = 10 * 366 * 24 * time.Hour

const (
	shortest   = time.Second
	maxExclude = 100

	defaultMisfireBy = time.Minute
	defaultMisfireUp = 1000
	maxMisfireUp     = 1_000_000
	maxVariance      = 24 * time.Hour
)

// Plan is a compiled Definition. It does not change, and is safe for concurrent use.
type Plan struct {
	Definition
	location *time.Location
	calendar *calendar // of Cron
	out      []blackout
}

// Compile checks a definition and fills in its defaults. An error names the field and its limit.
func (d Definition) Compile() (*Plan, error) {
	p := &Plan{Definition: d, location: time.UTC}
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

func (d Definition) checkNumbers() error {
	switch {
	case d.Misfire > MisfireAll:
		return fmt.Errorf("Misfire: %d: want MisfireOnce, MisfireSkip or MisfireAll", d.Misfire)
	case d.MisfireBy < 0 || d.MisfireBy > Longest:
		return fmt.Errorf("MisfireBy: %v: want 0 to %v", d.MisfireBy, Longest)
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

const maxYear = 9999 // of JSON, and of common notations

func (p *Plan) readRule() error {
	r := p.Rule
	switch r.Kind {
	case Cron:
		return p.readCron()
	case Every:
		if r.Every < shortest || r.Every > Longest || r.Every%time.Microsecond != 0 {
			return fmt.Errorf("Every: %v: want %v to %v, in whole microseconds", r.Every, shortest, Longest)
		}
		return nil
	case Once:
		if r.At.IsZero() || r.At.Year() < 1 || r.At.Year() > maxYear {
			return fmt.Errorf("Once: want a time of the years 1 to %d, not the zero time", maxYear)
		}
		return nil
	case OnDemand, After, Dormant:
		if len(p.out) > 0 {
			return errors.New("Exclude: only Cron, Every and Once have due times: leave it out")
		}
		return p.readParent()
	case "":
		return errors.New("it is not set: want Cron, Every, Once, OnDemand, After or Dormant")
	}
	return fmt.Errorf("this release has no kind of schedule %q: deploy the newer program", r.Kind)
}

func (p *Plan) readParent() error {
	if p.Rule.Kind == OnDemand {
		return nil
	}
	if err := CheckName(p.Rule.Parent); err != nil {
		return fmt.Errorf("name of the manifest before it: %w", err)
	}
	return nil
}

func (p *Plan) readCron() (err error) {
	if p.location, err = loadZone(p.Rule.Zone); err != nil {
		return fmt.Errorf("Cron: %w", err)
	}
	if p.calendar, err = parseCron(p.Rule.Expr); err != nil {
		return fmt.Errorf("Cron: %w", err)
	}
	p.calendar.out = p.out
	return nil
}

// zones caches locations: loading one reads a file.
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
		return nil, fmt.Errorf("zone %q is unknown here: %w (if the system has no zones, import time/tzdata)", name,
			err)
	}
	zones.Store(name, loaded)
	return loaded, nil
}

// Zone returns the zone of due times: Cron's zone, or UTC.
func (p *Plan) Zone() *time.Location { return p.location }

const maxName = 127

// CheckName returns an error that describes a fault in the name of a manifest, a group or an owner, or nil: it must
// match [a-z][a-z0-9_./-]{0,126}.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName && name[0] >= 'a' && name[0] <= 'z'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-'
	}
	if !ok {
		return fmt.Errorf(
			"name of %d bytes: want 1 to %d of a-z, 0-9, dot, dash, slash and underscore, beginning with a "+
				"letter",
			len(name),
			maxName,
		)
	}
	return nil
}

// Read reads the text of a definition. known reports whether this release supports all of its fields: a newer release
// may have written others.
func Read(text []byte) (d Definition, known bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	known = decoder.Decode(&d) == nil
	return d, known
}

// Parse reads and compiles the text of a definition. It ignores unknown fields.
func Parse(text []byte) (*Plan, error) {
	var d Definition
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read its definition: %w", err)
	}
	return d.Compile()
}

// ZoneOf returns the zone in the text of a definition, or UTC if it names no zone that this machine supports.
func ZoneOf(text []byte) *time.Location {
	var d Definition
	if json.Unmarshal(text, &d) == nil && d.Rule.Zone != "" {
		if zone, err := loadZone(d.Rule.Zone); err == nil {
			return zone
		}
	}
	return time.UTC
}
