package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/secret"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Source holds the stores for reading pages.
type Source struct {
	Op        *operate.Operator
	Pool      *pgxpool.Pool
	Schema    pg.Schema
	Scheduler *scheduler.Store                                        // nil without schedules
	Leases    *scheduler.Leases                                       // nil: leases are not shown
	Vitals    *vitals.Reader                                          // one for all reads: it compares them
	Redact    func(kind string, body json.RawMessage) json.RawMessage // nil: nothing is masked

	definitions map[string]*saga.Definition
	masks       map[string]*secret.Mask
}

// Ask holds the parameters of a page.
type Ask struct {
	Path   func(name string) string // returns a part of the address
	Query  url.Values
	Bodies bool // the reader may see bodies and states
}

// Page is the data of a template and of a JSON answer.
type Page interface {
	About() Head
	JSON() any
}

// Head holds the fields that every page has.
type Head struct {
	Title   string
	Section string // section of the navigation
	Command string // command that prints the same in a shell
	Audit   string // address of the changes of this target, "" for a page without changes
	Now     time.Time
}

// head returns the head of a page that is read now.
func head(section, title, command string) Head {
	return Head{Title: title, Section: section, Command: command, Now: time.Now()}
}

// audited returns the head of a page whose target operators change, see [AuditOf].
func (h Head) audited(thing, target string) Head {
	h.Audit = AuditOf(thing, target)
	return h
}

// withBody returns a command that also prints the body, if the reader may see it.
func withBody(a Ask, command string) string {
	if a.Bodies {
		return command + " --body"
	}
	return command
}

// About returns the head, for pages that embed it.
func (h Head) About() Head { return h }

// Fault is why a page cannot be shown, if the database is not the cause.
type Fault struct {
	Status int
	Text   string
}

func (f Fault) Error() string { return f.Text }

func missing(text string) error { return Fault{http.StatusNotFound, text} }
func wrong(text string) error   { return Fault{http.StatusBadRequest, text} }

// faultOf turns an error about a thing that does not exist into a Fault.
func faultOf(err error, text string) error {
	for _, gone := range []error{
		operate.ErrNotFound, operate.ErrNotInstalled, operate.ErrNoLimit, operate.ErrNoLetter, operate.ErrNoJob,
		scheduler.ErrNoManifest, scheduler.ErrNoRun, scheduler.ErrNoGroup,
	} {
		if errors.Is(err, gone) {
			return missing(text)
		}
	}
	return err
}

// Definition returns the definition of a saga, nil if it is not registered.
func (s *Source) Definition(name string) *saga.Definition { return s.definitions[name] }

// Body returns a body as it may be shown: without fields with the struct tag edda:"secret" in a kind of the
// definitions, and after Redact.
func (s *Source) Body(kind string, text []byte) []byte {
	return s.redacted(kind, s.masks[ofKind(kind)], text)
}

// patchOf returns a merge patch of bodies as it may be shown; nil if the reader may not see it. Without a kind it is
// masked like bodies of all registered kinds.
func patchOf(s *Source, a Ask, kind string, text []byte) []byte {
	if !a.Bodies || text == nil {
		return nil
	}
	for of, mask := range s.masks {
		if mask == nil || of != ofKind(kind) && (kind != "" || !strings.HasPrefix(of, ofKind(""))) {
			continue
		}
		masked, err := mask.Apply(text)
		if err != nil {
			return nil
		}
		text = masked
	}
	if text = s.redacted(kind, nil, text); !json.Valid(text) {
		return nil
	}
	return text
}

// State returns a state as it may be shown.
func (s *Source) State(name string, text []byte) []byte {
	return s.redacted(name, s.masks[ofSaga(name)], text)
}

func (s *Source) redacted(name string, mask *secret.Mask, text []byte) []byte {
	if text == nil {
		return nil
	}
	if mask != nil {
		masked, err := mask.Apply(text)
		if err != nil {
			return nil // a state that cannot be read may have a secret anywhere
		}
		text = masked
	}
	if s.Redact == nil || !json.Valid(text) {
		return text
	}
	return s.Redact(name, text)
}

func ofKind(kind string) string { return "kind " + kind }
func ofSaga(name string) string { return "saga " + name }

// Define adds a definition: its kinds, and the secrets in its state and its messages.
func (s *Source) Define(d *saga.Definition) error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("saga %.80q: %w", d.Name(), err)
	}
	if s.definitions == nil {
		s.definitions, s.masks = map[string]*saga.Definition{}, map[string]*secret.Mask{}
	}
	s.definitions[d.Name()] = d
	types := map[string]reflect.Type{ofSaga(d.Name()): d.StateType()}
	for _, k := range d.Kinds() {
		types[ofKind(k.Kind)] = k.Type
	}
	for of, t := range types {
		mask, err := secret.Of(t)
		if err != nil {
			return fmt.Errorf("saga %.80q: %s: %w", d.Name(), of, err)
		}
		s.masks[of] = mask
	}
	return nil
}
