package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/google/uuid"
)

// An order is placed by either driver, and its page follows it to the end.
func TestPageFollowsTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		route string
		form  url.Values
		want  []string
	}{
		"pgx": {"/orders", filled(), []string{"Waiting for the bank", "Paid, and being packed", "Shipped"}},
		"database/sql": {"/sql/orders", filled(),
			[]string{"Waiting for the bank", "Paid, and being packed", "Shipped"}},
		"refused": {"/orders", filled("item", "A bronze kettle", "quantity", "5"),
			[]string{"Waiting for the bank", "Cancelled: the bank refused the payment"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, 300*time.Millisecond)
			path := s.place(c.route, c.form)
			p := s.follow(path, "")
			var told []string
			version := int64(0)
			var last event
			for e, ok := p.next(); ok; e, ok = p.next() {
				if e.name != "state" {
					continue
				}
				last = e
				if h := e.news.Headline; h != "Placed" && (len(told) == 0 || told[len(told)-1] != h) {
					told = append(told, h)
				}
				if e.id == "" || e.id == overMark {
					continue
				}
				if m, err := bus.ParseWatchCursor(e.id); err != nil || m.Version <= version {
					t.Errorf("id %q after version %d: %v", e.id, version, err)
				} else {
					version = m.Version
				}
			}
			if !slices.Equal(told, c.want) || !last.news.Over || last.id != overMark {
				t.Errorf("told %q and then %+v\nwant %q", told, last, c.want)
			}
			page := s.get(path)
			if end := c.want[len(c.want)-1]; page.status != http.StatusOK || !strings.Contains(page.body, end) ||
				strings.Contains(page.body, "data-events") {
				t.Errorf("the page in the end: %d\n%s", page.status, page.body)
			}
			s.untilNoSaga()
		})
	}
}

func (s *shop) untilNoSaga() {
	s.t.Helper()
	for s.count(`SELECT count(*) FROM edda.saga`) > 0 && s.t.Context().Err() == nil {
	}
}

func TestHeadOfAStream(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	p := s.follow(s.place("/orders", filled()), "")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store",
		"X-Accel-Buffering": "no"} {
		if got := p.head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if e, _ := p.next(); e.retry != "2000" {
		t.Errorf("the first words are %+v", e)
	}
}

// A browser that reconnects sends its last mark, and does not receive the same news again.
func TestStreamGoesOnWhereItWasCut(t *testing.T) {
	s := openShop(t, 0, "web.orders") // the bank is closed: the order waits
	path := s.place("/orders", filled())
	p := s.follow(path, "")
	seen := p.state()
	for seen.news.Headline == "Placed" {
		seen = p.state()
	}
	if e, ok := p.next(); !ok || e.comment != "still here" {
		t.Errorf("no sign of life at rest: %+v %v", e, ok)
	}
	again := s.follow(path, seen.id)
	if e, _ := again.next(); e.retry == "" {
		t.Errorf("the first words are %+v", e)
	}
	for range 3 {
		if e, ok := again.next(); !ok || e.comment != "still here" {
			t.Errorf("told again: %+v %v", e, ok)
		}
	}
	for name, id := range map[string]string{"nonsense": "7\x80", "of another order": uuid.NewString() + ".3"} {
		forged := s.follow(path, id)
		if e := forged.state(); e.news != seen.news || e.news.Over {
			t.Errorf("%s: %+v, want %+v", name, e.news, seen.news)
		}
	}
	r := s.request("GET", path+"/events", nil)
	r.Header.Set("Last-Event-ID", overMark)
	if a := s.do(r); a.status != http.StatusNoContent {
		t.Errorf("a browser that has seen the end is answered %d, want 204", a.status)
	}
}

// Otherwise an open page would keep the server from stopping.
func TestShutdownEndsStreams(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	path := s.place("/orders", filled())
	var open []*page
	for range 20 {
		p := s.follow(path, "")
		p.state()
		open = append(open, p)
	}
	begun := time.Now()
	s.stop()
	if took := time.Since(begun); took > lastRequests/2 {
		t.Errorf("the program took %v to stop", took)
	}
	for _, p := range open {
		for _, ok := p.next(); ok; _, ok = p.next() {
		}
		if err := p.in.Err(); err != nil {
			t.Errorf("the stream was torn: %v", err)
		}
	}
	if n := s.site.streams.Load(); n != 0 {
		t.Errorf("%d streams are counted after the end", n)
	}
}

func TestBadInputNamesItsField(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	for _, c := range []struct{ field, value, says string }{
		{"id", "", "Reload the page"},
		{"id", "00000000-0000-0000-0000-000000000000", "Reload the page"},
		{"id", "'; DROP TABLE shop_order", "Reload the page"},
		{"item", "A yacht", "Choose a product from the list"},
		{"item", "", "Choose a product from the list"},
		{"quantity", "0", "from 1 to 20"},
		{"quantity", "21", "from 1 to 20"},
		{"quantity", "two", "from 1 to 20"},
		{"quantity", "1e3", "from 1 to 20"},
		{"quantity", "99999999999999999999", "from 1 to 20"},
		{"note", strings.Repeat("ü", mostNote+1), "at most 200 characters"},
		{"note", "\xff", "at most 200 characters"},
		{"note", "a\x00b", "at most 200 characters"},
	} {
		for _, route := range []string{"/orders", "/sql/orders"} {
			a := s.post(route, filled(c.field, c.value))
			if a.status != http.StatusBadRequest || !strings.Contains(a.body, c.says) ||
				!strings.Contains(a.body, `href="#`+c.field+`"`) {
				t.Errorf("%s %s=%q answered %d:\n%s", route, c.field, c.value, a.status, a.body)
			}
			if c.field != "id" && !strings.Contains(a.body, `aria-describedby="`) {
				t.Errorf("%s=%q: the field is not marked:\n%s", c.field, c.value, a.body)
			}
		}
	}
	if a := s.post("/orders", filled("note", strings.Repeat("x", mostForm))); a.status != http.StatusBadRequest {
		t.Errorf("a form that is too long is answered %d", a.status)
	}
	if n := s.count(`SELECT count(*) FROM shop_order`); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
}

// A visitor's input is text on every page, and no page runs a script of its own.
func TestWhatIsTypedIsText(t *testing.T) {
	const bad = `"><script>alert(1)</script></textarea><b>`
	s := openShop(t, 0, "web.orders")
	pages := []answer{
		s.post("/orders", filled("note", bad, "quantity", `7" onfocus="x`, "item", bad, "id", bad)),
		s.get(s.place("/orders", filled("note", bad))),
		s.get("/orders/" + url.PathEscape(bad)),
		s.get("/"),
	}
	for _, a := range pages {
		if strings.Contains(a.body, "<script>") || strings.Contains(a.body, "<b>") ||
			strings.Contains(a.body, `" onfocus=`) {
			t.Errorf("typed text is markup:\n%s", a.body)
		}
		if a.header.Get("Content-Security-Policy") != policy || strings.Contains(policy, "unsafe") ||
			a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("head: %v", a.header)
		}
		if strings.Contains(a.body, "http://") || strings.Contains(a.body, "https://") ||
			strings.Contains(a.body, "style=") {
			t.Errorf("the page has something from elsewhere, or a style of its own:\n%s", a.body)
		}
	}
}

// A double click, a browser that tries again, and both routes at once: one order.
func TestFormSentTwiceIsOneOrder(t *testing.T) {
	s := openShop(t, 0)
	f := filled()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			a := s.post([]string{"/orders", "/sql/orders"}[n%2], f)
			if a.status != http.StatusSeeOther || a.header.Get("Location") != "/orders/"+f.Get("id") {
				t.Errorf("answered %d, to %q", a.status, a.header.Get("Location"))
			}
		})
	}
	all.Wait()
	p := s.follow("/orders/"+f.Get("id"), "")
	for !p.state().news.Over {
	}
	s.place("/orders", f) // and once more when it is shipped
	s.untilNoSaga()
	if n := s.count(`SELECT count(*) FROM shop_order`); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
	if _, err := s.pool.Exec(t.Context(), "DELETE FROM edda.sent_id"); err != nil { // a week has passed
		t.Fatal(err)
	}
	for _, route := range []string{"/orders", "/sql/orders"} {
		s.place(route, f)
	}
	if orders, sagas := s.count(`SELECT count(*) FROM shop_order`),
		s.count(`SELECT count(*) FROM edda.saga`); orders != 1 || sagas != 0 {
		t.Errorf("%d orders and %d sagas, want 1 and 0", orders, sagas)
	}
	other := filled()
	s.place("/orders", other)
	f.Set("id", other.Get("id"))
	f.Set("quantity", "3")
	if a := s.post("/orders", f); a.status != http.StatusConflict || !strings.Contains(a.body, "sent before") {
		t.Errorf("the same form with something else in it is answered %d:\n%s", a.status, a.body)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	for _, path := range []string{"/orders/7", "/orders/" + uuid.NewString(), "/orders/" + uuid.Nil.String(),
		"/orders/", "/nothing",
		"/orders/7/events", "/orders/" + uuid.NewString() + "/events", "/static/../main.go", "/static/no.js"} {
		if a := s.get(path); a.status != http.StatusNotFound && a.status != http.StatusTemporaryRedirect &&
			a.status != http.StatusMovedPermanently {
			t.Errorf("%s is answered %d", path, a.status)
		}
	}
	for _, path := range []string{"/static/shop.css", "/static/follow.js"} {
		if a := s.get(path); a.status != http.StatusOK || a.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s is answered %d", path, a.status)
		}
	}
	if a := s.do(s.request("DELETE", "/orders/"+uuid.NewString(), nil)); a.status != http.StatusMethodNotAllowed {
		t.Errorf("DELETE is answered %d", a.status)
	}
}

// A form on a different site cannot order here in the name of a visitor.
func TestOtherSitesCannotOrder(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	r := s.request("POST", "/orders", filled())
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := s.do(r); a.status != http.StatusForbidden {
		t.Errorf("answered %d, want 403", a.status)
	}
}

// The number of streams is limited, and a client above the limit is asked to retry.
func TestTooManyStreams(t *testing.T) {
	s := openShop(t, 0, "web.orders")
	path := s.place("/orders", filled())
	s.site.streams.Store(mostStream)
	if a := s.get(path + "/events"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("answered %d", a.status)
	}
	if n := s.site.streams.Load(); n != mostStream {
		t.Errorf("%d streams are counted, want %d", n, mostStream)
	}
}

// The program opens the shop, twice in the same database.
func TestProgram(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	t.Setenv(eddadev.PagesVariable, "off")
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, listener, 0) }()
		response, err := http.Get("http://" + listener.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("the first page is answered %s", response.Status)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
