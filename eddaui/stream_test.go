package eddaui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// stream is an open stream of a page.
type stream struct {
	t      *testing.T
	events chan event
	end    func()
}

type event struct {
	name string
	id   string
	html string
	text string
}

func (s *site) open(path string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+prefix+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.server.Client().Do(r) //nolint:bodyclose // the stream ends with end, which closes it
	if err != nil {
		s.t.Fatal(err)
	}
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream of %s is %d %s", path, got.StatusCode, got.Header.Get("Content-Type"))
	}
	for name, value := range must {
		if got.Header.Get(name) != value {
			s.t.Errorf("the stream of %s has the header %s: %q", path, name, got.Header.Get(name))
		}
	}
	st := &stream{t: s.t, events: make(chan event, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(st.events)
		lines := bufio.NewScanner(got.Body)
		lines.Buffer(nil, 1<<20)
		name := ""
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			} else if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var data struct{ ID, HTML, Text string }
				_ = json.Unmarshal([]byte(text), &data) // that of a clock is a number
				st.events <- event{name, data.ID, data.HTML, data.Text}
			}
		}
	}()
	st.end = sync.OnceFunc(func() {
		cancel()
		_ = got.Body.Close()
		<-done
	})
	s.t.Cleanup(st.end)
	return st
}

// until waits for an event, and returns those before it.
func (st *stream) until(what string, ok func(event) bool) (before []event) {
	st.t.Helper()
	patience := time.After(pgdev.Patience(20 * time.Second))
	for {
		select {
		case e, open := <-st.events:
			if !open {
				st.t.Fatalf("the stream has ended before %s; it had %v", what, before)
			}
			if before = append(before, e); ok(e) {
				return before
			}
		case <-patience:
			st.t.Fatalf("no event with %s came, only %v", what, before)
		}
	}
}

func fragment(id, text string) func(event) bool {
	return func(e event) bool { return e.name == "fragment" && e.id == id && strings.Contains(e.html, text) }
}

// A viewer gets the whole page, and then only changes.
func follows(t *testing.T, s *site, shop *world.Shop) {
	s = s.with(t)
	st := s.open("/now?live=1")
	st.until("the endpoints", fragment("endpoints", "payments"))
	if err := shop.Op.Endpoints().Pause(t.Context(), "stock", "counting <b>shelves</b>"); err != nil {
		t.Fatal(err)
	}
	st.until("the pause", fragment("sentences", "counting &lt;b&gt;shelves"))
	if err := shop.Op.Endpoints().Resume(t.Context(), "stock"); err != nil {
		t.Fatal(err)
	}
	events := st.until("its end", func(e event) bool {
		return e.id == "sentences" && !strings.Contains(e.html, "shelves")
	})
	seen := map[string]string{}
	for _, e := range events {
		if e.html != "" && seen[e.id] == e.html {
			t.Errorf("fragment %s came twice in a row as it was", e.id)
		}
		seen[e.id] = e.html
	}
	one := s.open("/sagas/order/2026-0013?live=1")
	one.until("the timeline", fragment("timeline", "stock.reserved"))
	if _, err := shop.Bus.Send(t.Context(), world.Note{Order: "2026-0013", Text: "ring once"}); err != nil {
		t.Fatal(err)
	}
	one.until("the note", fragment("timeline", "ring once"))
	s.ui.Close() // as RegisterOnShutdown does
	for range st.events {
	}
	for range one.events {
	}
	if a := s.do(http.MethodGet, "/now?live=1"); a.status != http.StatusServiceUnavailable {
		t.Errorf("a stream of a closed UI is %d", a.status)
	}
}

// An open page shows nothing more to an actor whose rights have changed since: the stream ends before the next
// change.
func TestAnOpenPageEndsWithItsRights(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	for n, becomes := range []eddaui.Permission{0, eddaui.View | eddaui.Pause, eddaui.Bodies} {
		var may atomic.Uint32
		may.Store(uint32(eddaui.View | eddaui.Bodies))
		s := serve(t, pool, schema, eddaui.Options{Authorize: func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Permissions: eddaui.Permission(may.Load())}, nil
		}})
		st := s.open("/now?live=1")
		st.until("the page", fragment("endpoints", ""))
		may.Store(uint32(becomes))
		endpoint := fmt.Sprint("endpoint-", n)
		if err := op.Queues().Install(t.Context(), endpoint); err != nil {
			t.Fatal(err)
		}
		for e := range st.events {
			if strings.Contains(e.html, endpoint) {
				t.Errorf("the page shows %s to somebody with the rights %b", endpoint, becomes)
				st.end()
			}
		}
	}
}

// tracer counts how often a statement begins.
type tracer struct {
	text string
	n    atomic.Int64
}

func (t *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, t.text) {
		t.n.Add(1)
	}
	return ctx
}

func (t *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Fifty viewers cost as much as one: one read a second.
func TestFiftyViewersAreOneQuery(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	count := &tracer{text: "s.renewed, s.ended"} // the processes, which the first page reads once
	config := pool.Config().Copy()
	config.ConnConfig.Tracer, config.MaxConns = count, 4
	reader, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	s := serve(t, pool, schema, eddaui.Options{Reader: reader})
	s.get("/")
	if n := count.n.Load(); n != 1 {
		t.Fatalf("a page asks %d times for the processes: the test counts the wrong statement", n)
	}
	began := time.Now()
	streams := make([]*stream, 50)
	for n := range streams {
		streams[n] = s.open("/now?live=1")
	}
	for _, st := range streams {
		st.until("the page", fragment("endpoints", "No endpoint is installed"))
	}
	for read := count.n.Load(); count.n.Load() < read+2; { // and reads continue
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("nothing is read any more")
		}
	}
	n, seconds := count.n.Load()-1, time.Since(began).Seconds()
	if most := int64(seconds) + 1; n > most {
		t.Errorf("the page was read %d times in %.1f s for 50 viewers, want %d at most", n, seconds, most)
	}
	for _, st := range streams {
		st.end()
	}
	read := count.n.Load()
	idle := time.NewTimer(2500 * time.Millisecond)
	<-idle.C // the absence of an event cannot be waited for otherwise
	if again := count.n.Load(); again > read+1 {
		t.Errorf("the page was read %d times when nobody looked", again-read)
	}
}
