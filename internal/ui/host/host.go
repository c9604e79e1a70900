package uihost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options are the options of a host.
type Options struct {
	Schema   string
	Listen   string   // address and port; port 0 is a free one. "" is Standard, or a free port if that is taken
	Auth     string   // "", basic:FILE, or header:NAME with trusted proxies behind an @
	Hosts    []string // names of hosts that a proxy passes on, besides localhost and addresses; only with header:NAME
	Actor    string   // the actor of requests without a name, for the audit; "" is "local"
	ReadOnly bool     // all actors may only read
	Out      io.Writer
	Log      *slog.Logger
}

// ErrUsage means that options are wrong or contradict each other.
var ErrUsage = errors.New("wrong options")

// Standard is the default address of the pages.
const Standard = "127.0.0.1:7433"

const (
	lastRequests = 5 * time.Second // for requests that are in flight at the end
	mostHeader   = 64 << 10
)

// Host serves the pages.
type Host struct {
	o      Options
	access *access
}

// New returns a host, or an ErrUsage. It reads the file of --auth, and does no other I/O.
func New(o Options) (*Host, error) {
	a, err := newAccess(o)
	return &Host{o, a}, err
}

// Database is a database with a name that its addresses begin with. A single one may have no name.
type Database struct {
	Name string
	Pool *pgxpool.Pool
}

// validName is the name of a database: a part of an address that needs no escapes.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// CheckNames returns an ErrUsage if a name is not valid or occurs twice.
func CheckNames(names []string) error {
	for n, name := range names {
		if !validName.MatchString(name) {
			return fmt.Errorf("%w: %q is no name of a database: want letters, digits, _ and -", ErrUsage, name)
		}
		if slices.Contains(names[:n], name) {
			return fmt.Errorf("%w: two databases are called %s", ErrUsage, name)
		}
	}
	return nil
}

// Serve serves the pages of a schema until ctx ends: of one database, or of several, each under its name. It prints the
// address to Options.Out when it listens.
func (h *Host) Serve(ctx context.Context, databases ...Database) error {
	o, a := h.o, h.access
	listener, err := o.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed already if a server had it
	pages, end, err := h.pages(databases)   //nolint:contextcheck // they connect when the first page is read
	if err != nil {
		return err
	}
	defer end()
	server := &http.Server{
		Handler: probed(a.guard(pages)), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(end)
	if _, err := fmt.Fprintf(o.Out, "Edda's pages: %s\n%sCtrl-C ends them.\n", a.listens(listener.Addr()),
		a.once()); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
		defer cancel()
		return server.Shutdown(ending)
	})
	group.Go(func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// listen listens at the configured address, or the standard one, or a free port if that is taken.
func (o *Options) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cmp.Or(o.Listen, Standard))
	if err != nil && o.Listen == "" {
		listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w (--listen sets a different address; port 0 is a free port)", err)
	}
	return listener, nil
}

// probed answers the probe of a supervisor, which has no name and no cookie. The answer only shows that the process
// serves requests: the pages show that a database is away, and a restart would not help.
func probed(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/health/live" {
			pages.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, "{\"live\":true}\n") // the prober may be gone
	})
}

// pages returns the pages of all databases, and a function that ends their streams.
func (h *Host) pages(databases []Database) (all http.Handler, end func(), err error) {
	var uis []*eddaui.UI
	end = func() {
		for _, ui := range uis {
			ui.Close()
		}
	}
	mux := http.NewServeMux()
	for n, d := range databases {
		o := eddaui.Options{Schema: h.o.Schema, Authorize: h.access.authorize, ReadOnly: h.o.ReadOnly, Log: h.o.Log}
		if len(databases) > 1 {
			o.Databases = switchOf(databases, n)
		}
		ui, err := eddaui.New(d.Pool, o)
		if err != nil {
			end()
			return nil, nil, err
		}
		if uis = append(uis, ui); len(databases) == 1 {
			return ui, end, nil
		}
		mux.Handle("/"+d.Name+"/", http.StripPrefix("/"+d.Name, ui))
	}
	mux.Handle("/", h.first(databases[0].Name))
	return mux, end, nil
}

// switchOf returns the links between databases for the header of the pages.
func switchOf(databases []Database, current int) (all []eddaui.Database) {
	for n, d := range databases {
		all = append(all, eddaui.Database{Name: d.Name, Path: "../" + d.Name + "/", Current: n == current})
	}
	return all
}

// first redirects from the root address to the first database.
func (h *Host) first(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch _, err := h.access.authorize(r); {
		case err != nil:
			h.o.Log.WarnContext(r.Context(), "edda: ui: a request was refused", "path", r.URL.Path, "error", err)
			http.Error(w, "You have no right to see these pages.", http.StatusForbidden)
		case r.URL.Path != "/":
			http.Error(w, "There is no such database.", http.StatusNotFound)
		default:
			http.Redirect(w, r, "/"+name+"/", http.StatusFound)
		}
	})
}
