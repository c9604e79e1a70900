package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// shop is a program on a database of the test's own, and a visitor.
type shop struct {
	t       *testing.T
	pool    *pgxpool.Pool
	site    *site
	address string
	client  *http.Client
	stop    func()
}

// openShop runs the site with all endpoints, or with the named ones: messages to the others stay in their queues.
func openShop(t *testing.T, pause time.Duration, only ...string) *shop {
	t.Helper()
	t.Parallel()
	pool := eddatest.Pool(t)
	if _, err := pool.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	p, host := newTestProgram(t, pool, db, pause, only)
	p.listener, p.site.beat = listener, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(host.Run(ctx), db.Close()) }()
	transport := &http.Transport{}
	s := &shop{t: t, pool: pool, site: p.site, address: "http://" + listener.Addr().String(), client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			transport.CloseIdleConnections()
		})
	}
	t.Cleanup(s.stop)
	return s
}

func newTestProgram(
	t *testing.T, pool *pgxpool.Pool, db *sql.DB, pause time.Duration, only []string,
) (*program, *edda.Host) {
	t.Helper()
	b, err := bus.New(pool, bus.Options{AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	runners, err := endpoints(b, pause)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{}
	if p.site, err = newSite(pool, db, b, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	chosen := []edda.Runner{p}
	for _, r := range runners {
		e := r.(*bus.Endpoint)
		if err := e.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(only) == 0 || strings.Contains(strings.Join(only, " "), e.Name()) {
			chosen = append(chosen, e)
		}
	}
	host, err := edda.NewHost(chosen...)
	if err != nil {
		t.Fatal(err)
	}
	return p, host
}

// answer is a response of the server.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *shop) do(r *http.Request) answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func (s *shop) request(method, path string, body url.Values) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, strings.NewReader(body.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

func (s *shop) get(path string) answer { s.t.Helper(); return s.do(s.request("GET", path, nil)) }

func (s *shop) post(path string, f url.Values) answer {
	s.t.Helper()
	return s.do(s.request("POST", path, f))
}

// filled is a form that is right, with changes.
func filled(changes ...string) url.Values {
	f := url.Values{"id": {uuid.NewString()}, "item": {"A woollen hat"}, "quantity": {"2"}, "note": {""}}
	for n := 0; n < len(changes); n += 2 {
		f.Set(changes[n], changes[n+1])
	}
	return f
}

// place orders, and returns the path of the order's page.
func (s *shop) place(route string, f url.Values) (path string) {
	s.t.Helper()
	a := s.post(route, f)
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/orders/"+f.Get("id") {
		s.t.Fatalf("%s answered %d, to %q:\n%s", route, a.status, a.header.Get("Location"), a.body)
	}
	return a.header.Get("Location")
}

func (s *shop) count(query string) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), query).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// event is an event of a stream; a comment has a text and no data.
type event struct {
	name, id, comment, retry string
	news                     news
}

// page reads a stream.
type page struct {
	t    *testing.T
	head http.Header
	body io.ReadCloser
	in   *bufio.Scanner
}

func (s *shop) follow(path, lastEventID string) *page {
	s.t.Helper()
	r := s.request("GET", path+"/events", nil)
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream answered %d", response.StatusCode)
	}
	return &page{t: s.t, head: response.Header, body: response.Body, in: bufio.NewScanner(response.Body)}
}

// next reads up to the next empty line; ok is false at the end of the stream.
func (p *page) next() (e event, ok bool) {
	p.t.Helper()
	for p.in.Scan() {
		line := p.in.Text()
		if line == "" {
			return e, true
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			e.comment = value
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "retry":
			e.retry = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.news); err != nil {
				p.t.Fatalf("data %q: %v", value, err)
			}
		default:
			p.t.Fatalf("a line of no known field: %q", line)
		}
	}
	return e, false
}

// state reads the next event that has news.
func (p *page) state() event {
	p.t.Helper()
	for {
		e, ok := p.next()
		if !ok {
			p.t.Fatal("the stream ended")
		}
		if e.name == "state" {
			return e
		}
	}
}
