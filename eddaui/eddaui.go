package eddaui

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/live"
	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options are the options of a UI. Every zero is a default.
type Options struct {
	Schema string // "" is "edda"

	// Authorize returns the actor of a request, with its rights. It is called for each request, and for an open page
	// also before each of its changes is sent, at most once a second: if it then returns an error or different
	// rights, the page's stream ends, and the browser requests it again. An error is answered with 403, and its text
	// is not shown. It is called from many goroutines. nil: everyone may View, which includes no bodies and no
	// states, and no one may change anything.
	Authorize func(r *http.Request) (Actor, error)

	// Reader is the pool that pages read from, if it is not to be New's. Its role should have
	// default_transaction_read_only and a statement_timeout; New's pool sets them itself unless a pooler refuses
	// them.
	Reader *pgxpool.Pool

	// ReadOnly removes all rights except View from everyone: there are no buttons, and every POST is refused.
	ReadOnly bool

	Scheduler *scheduler.Store   // nil: a store that New makes, for stored manifests
	Sagas     []*saga.Definition // show which kinds an instance may still get; without them only stored facts are shown

	// Trace is a link to a trace, with {trace} in the place of its id: "https://tempo.example/trace/{trace}". It is
	// shown for messages with a header traceparent. "" means no link.
	Trace string

	// Redact returns a body, or a state with the saga's name as its kind, without the parts that must not be shown.
	// nil: unchanged. The history is masked when it is written, see bus.Options.Redact. If Redact panics, ends its
	// goroutine or does not return within 5 s, the page shows nothing of the text, and the failure is logged.
	Redact func(kind string, body json.RawMessage) json.RawMessage

	// Databases are the targets of the switch in the header, if there are pages of several databases. nil means no
	// switch.
	Databases []Database

	Log *slog.Logger // nil: slog.Default()
}

// Database is a database with pages, as a target of the switch.
type Database struct {
	Name    string
	Path    string // of its first page, relative to the first page of these pages, with a slash at its end: "../other/"
	Current bool   // these pages belong to it
}

// UI serves the pages. It is safe for concurrent use.
type UI struct {
	o       Options
	source  *page.Source // pages read from it
	desk    *act.Desk    // actions write with it
	jobs    *act.Jobs
	hub     *live.Hub
	look    *look
	handler http.Handler
	log     *slog.Logger
	reading reading
	schema  pg.Schema
	end     func()
}

// Limits on the cost of pages.
const (
	readers   = 4 // connections of a pool that New makes
	readLimit = 10 * time.Second
)

// New returns a UI over a pool, which actions use for writing. It does no I/O. Close it.
func New(pool *pgxpool.Pool, o Options) (*UI, error) {
	if pool == nil {
		return nil, errors.New("new UI: the pool is nil")
	}
	u := &UI{o: o, end: func() {}}
	u.log = handlers.Logger(o.Log)
	u.o.Redact = redacting(o.Redact, u.log)
	if err := u.open(pool); err != nil {
		return nil, fmt.Errorf("new UI: %w", err)
	}
	u.hub = live.New(live.Options{Patience: readLimit, Log: u.log})
	u.handler = u.routes(u.actions())
	return u, nil
}

func (u *UI) open(pool *pgxpool.Pool) (err error) {
	if u.look, err = newLook(u.o.Trace); err != nil {
		return err
	}
	if u.schema, err = pg.ParseSchema(u.o.Schema); err != nil {
		return err
	}
	reader := u.o.Reader
	if reader == nil {
		if reader, err = u.reading.pool(pool); err != nil {
			return err
		}
		u.end = reader.Close
	}
	u.source = &page.Source{Pool: reader, Schema: u.schema, Redact: u.o.Redact}
	if u.source.Op, err = operate.New(reader, operate.Options{Schema: u.o.Schema, CountTo: page.CountTo}); err != nil {
		return err
	}
	if u.source.Scheduler = u.o.Scheduler; u.source.Scheduler == nil {
		u.source.Scheduler, err = scheduler.NewStore(reader, scheduler.StoreOptions{Schema: u.o.Schema})
		if err != nil {
			return err
		}
	}
	if u.source.Leases, err = scheduler.NewLeases(reader, u.o.Schema); err != nil {
		return err
	}
	if u.source.Vitals, err = vitals.New(reader, vitals.Options{Schema: u.o.Schema}); err != nil {
		return err
	}
	for _, d := range u.o.Sagas {
		if err := u.source.Define(d); err != nil {
			return err
		}
	}
	return u.openDesk(pool)
}

// openDesk opens the desk for actions, over the pool of the program.
func (u *UI) openDesk(pool *pgxpool.Pool) (err error) {
	u.desk, err = act.NewDesk(pool, act.Options{
		Schema: u.o.Schema, Scheduler: u.o.Scheduler, Redact: u.o.Redact, Definition: u.source.Definition,
		Body: u.source.Body, State: u.source.State,
	})
	if err == nil {
		u.jobs = act.NewJobs(u.desk, u.log)
	}
	return err
}

// Close ends the streams of open pages, interrupts the jobs on dead letters that were begun here, and closes the pool
// that New has made. Pass it to http.Server.RegisterOnShutdown, because Shutdown waits for streams. It may be called
// more than once.
func (u *UI) Close() {
	u.hub.Close()
	u.jobs.Close()
	u.end()
}
