package page

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Source is where pages are read from.
type Source struct {
	Op          *operate.Operator
	Pool        *pgxpool.Pool
	Scheduler   *scheduler.Store  // nil: there are no schedules
	Leases      *scheduler.Leases // nil: leases are not shown
	Definitions map[string]*saga.Definition
	Redact      func(kind string, body json.RawMessage) json.RawMessage // nil: bodies and states as they are
}

// Ask is what a page is asked for.
type Ask struct {
	Path   func(name string) string // a part of the address
	Query  url.Values
	Bodies bool // the asker may see bodies and states
}

// Page is what a template and a JSON are made of.
type Page interface {
	About() Head
	JSON() any
}

// Head is what every page has.
type Head struct {
	Title   string
	Section string // of the navigation
	Command string // that shows the same in a shell
	Now     time.Time
}

// head returns the head of a page that is read now.
func head(section, title, command string) Head {
	return Head{Title: title, Section: section, Command: command, Now: time.Now()}
}

// About is the head itself, for pages that embed it.
func (h Head) About() Head { return h }

// Fault is a page that cannot be shown, for a reason that is not the database's.
type Fault struct {
	Status int
	Text   string
}

func (f Fault) Error() string { return f.Text }

func missing(text string) error { return Fault{http.StatusNotFound, text} }
func wrong(text string) error   { return Fault{http.StatusBadRequest, text} }

// faultOf turns the errors of a thing that does not exist into a Fault.
func faultOf(err error, text string) error {
	for _, gone := range []error{
		operate.ErrNotFound, operate.ErrNotInstalled, operate.ErrNoLimit, deadletter.ErrNotFound,
		scheduler.ErrNoManifest, scheduler.ErrNoRun, scheduler.ErrNoGroup,
	} {
		if errors.Is(err, gone) {
			return missing(text)
		}
	}
	return err
}

// redacted is a body or a state as it may be shown.
func (s *Source) redacted(kind string, text []byte) []byte {
	if s.Redact == nil || text == nil || !json.Valid(text) {
		return text
	}
	return s.Redact(kind, text)
}
