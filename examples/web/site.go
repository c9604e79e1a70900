package main

import (
	"context"
	"database/sql"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// site is the web side. It sends, reads and watches, and would run as well in a process without endpoints.
type site struct {
	pool  *pgxpool.Pool
	db    *sql.DB
	bus   *bus.Bus
	log   *slog.Logger
	pages map[string]*template.Template
	beat  time.Duration // between signs of life on a stream

	streams    atomic.Int64
	closing    context.Context // ends when streams should
	endStreams context.CancelFunc
}

func newSite(pool *pgxpool.Pool, db *sql.DB, b *bus.Bus, log *slog.Logger) (*site, error) {
	s := &site{pool: pool, db: db, bus: b, log: log, pages: map[string]*template.Template{}, beat: 15 * time.Second}
	s.closing, s.endStreams = context.WithCancel(context.Background())
	for _, name := range []string{"form.html", "order.html", "message.html"} {
		page, err := template.ParseFS(pageFiles, "pages/layout.html", "pages/"+name)
		if err != nil {
			return nil, err
		}
		s.pages[name] = page
	}
	return s, nil
}

// routes returns the handler of the whole site. It refuses forms of other sites.
func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("POST /orders", s.take(s.place))
	mux.HandleFunc("POST /sql/orders", s.take(s.placeSQL))
	mux.HandleFunc("GET /orders/{id}", s.order)
	mux.HandleFunc("GET /orders/{id}/events", s.events)
	mux.Handle("GET /static/", http.FileServerFS(staticFiles))
	return http.NewCrossOriginProtection().Handler(guarded(mux))
}

// policy allows only content from this server: no script or style in a page, whatever a visitor has typed.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

func orderID(r *http.Request) (id string, ok bool) {
	parsed, err := saga.ParseID(r.PathValue("id"))
	return parsed.String(), err == nil && !parsed.IsZero()
}
