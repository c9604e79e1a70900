package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
)

const (
	outageSaidAfter = 5 * time.Second // a shorter outage is the restart of a pooler, or a lost connection
	outageSaidEvery = time.Minute
	outageEndsAfter = time.Second // without a failure
)

// Outage keeps a log readable while the database is away, when every loop warns again and again. Of the warnings of
// its loggers with an error of a lost database, the first is logged as it is, the others at the level Debug. After
// five seconds, then once a minute, and at the end, a warning has the duration so far: the first warning is of
// whatever failed first, and may look harmless. Safe for concurrent use.
type Outage struct {
	log *slog.Logger
	on  atomic.Bool

	mu     sync.Mutex
	since  time.Time
	last   time.Time // the last failure
	next   time.Time // when the next warning is due
	hidden int       // hidden warnings
}

// NewOutage returns an Outage that logs to log.
func NewOutage(log *slog.Logger) *Outage { return &Outage{log: log} }

// Logger returns a logger for warnings about work that will be tried again, which writes to to. It examines their
// attribute "error".
func (o *Outage) Logger(to *slog.Logger) *slog.Logger {
	return slog.New(outageHandler{to.Handler(), o})
}

// Over is called after a successful use of the database. It costs almost nothing while there is no outage.
func (o *Outage) Over() {
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.on.Load() || now.Sub(o.last) < outageEndsAfter {
		return
	}
	if o.hidden > 0 {
		o.log.Warn("edda: the database is back", "away_for", now.Sub(o.since), "hidden", o.hidden)
	}
	o.on.Store(false)
}

// fails notes a warning, and reports whether it is to be logged as it is.
func (o *Outage) fails(err error) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	if !o.on.Load() {
		o.on.Store(true)
		o.since, o.next, o.hidden = o.last, o.last.Add(outageSaidAfter), 0
		return true
	}
	o.hidden++
	if !o.last.Before(o.next) {
		o.next = o.last.Add(outageSaidEvery)
		o.log.Warn("edda: the database is away", "since", o.since.UTC(), "hidden", o.hidden, "error", err)
	}
	return false
}

// away distinguishes errors of an unreachable database from refusals.
func away(err error) bool {
	switch pgerr.ClassOf(err) {
	case pgerr.Lost, pgerr.ReadOnly, pgerr.Exhausted:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// outageHandler is the handler of Outage.Logger.
type outageHandler struct {
	slog.Handler
	outage *Outage
}

func (h outageHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	var err error
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			err, _ = a.Value.Any().(error)
		}
		return err == nil
	})
	if err == nil || !away(err) || h.outage.fails(err) {
		return h.Handler.Handle(ctx, r)
	}
	if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h outageHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return outageHandler{h.Handler.WithAttrs(attrs), h.outage}
}

func (h outageHandler) WithGroup(name string) slog.Handler {
	return outageHandler{h.Handler.WithGroup(name), h.outage}
}
