package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// browser is the other end of a stream, which reads at once or not at all.
type browser struct {
	header http.Header
	status int
	text   atomic.Pointer[string]
}

func newBrowser() *browser {
	b := &browser{header: http.Header{}}
	b.text.Store(new(string))
	return b
}

func (b *browser) Header() http.Header    { return b.header }
func (b *browser) WriteHeader(status int) { b.status = status }
func (b *browser) Flush()                 {}

func (b *browser) Write(p []byte) (int, error) {
	all := *b.text.Load() + string(p)
	b.text.Store(&all)
	return len(p), nil
}

func (b *browser) fragments() int { return strings.Count(*b.text.Load(), "event: fragment") }

// watch opens a stream; the second result ends it, like a browser that leaves.
func watch(h *Hub, kind, key string, read Read) (*browser, func()) {
	return watchWith(h, Page{kind, key, read, func() bool { return true }})
}

func watchWith(h *Hub, p Page) (*browser, func()) {
	b := newBrowser()
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(b, r, p)
	}()
	return b, func() {
		cancel()
		<-done
	}
}

// wait lets the time of the test pass.
func wait(d time.Duration) { <-time.After(d) }

// counted reads a page of two fragments. One of them changes each time.
func counted(n *atomic.Int64) Read {
	return func(context.Context) ([]Fragment, error) {
		return []Fragment{{ID: "same", HTML: "<p>same</p>"}, {ID: "new", HTML: fmt.Sprint(n.Add(1))}}, nil
	}
}

func TestOneLoopServesAllViewersOfAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{}), atomic.Int64{}
		var all []*browser
		for range 50 {
			b, leave := watch(h, "now", "/", counted(&n))
			defer leave()
			all = append(all, b)
		}
		wait(9500 * time.Millisecond)
		synctest.Wait()
		if n.Load() != 10 {
			t.Errorf("50 viewers had the page read %d times in 9.5 s, want 10", n.Load())
		}
		for _, b := range all {
			if b.fragments() != 11 {
				t.Fatalf("a viewer has got %d fragments, want the whole page and 9 changes:\n%s", b.fragments(),
					*b.text.Load())
			}
		}
		h.Close()
	})
}

func TestPagesOfAKindTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, one, two, other := New(Options{}), atomic.Int64{}, atomic.Int64{}, atomic.Int64{}
		for key, n := range map[string]*atomic.Int64{"/1": &one, "/2": &two} {
			_, leave := watch(h, "saga", key, counted(n))
			defer leave()
		}
		_, leave := watch(h, "now", "/", counted(&other))
		defer leave()
		wait(9500 * time.Millisecond)
		synctest.Wait()
		if one.Load() != 5 || two.Load() != 5 || other.Load() != 10 {
			t.Errorf("two pages of a kind were read %d and %d times, want 5 each; that of another kind %d, want 10",
				one.Load(), two.Load(), other.Load())
		}
		h.Close()
	})
}

func TestNobodyLooksAndNothingIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{}), atomic.Int64{}
		_, leave := watch(h, "now", "/", counted(&n))
		wait(1500 * time.Millisecond)
		leave()
		before := n.Load()
		wait(time.Minute)
		synctest.Wait()
		if n.Load() != before {
			t.Errorf("the page was read %d times when nobody looked", n.Load()-before)
		}
		b, leave := watch(h, "now", "/", counted(&n)) // a viewer comes back
		defer leave()
		synctest.Wait()
		if b.fragments() != 2 {
			t.Errorf("a viewer who comes back gets %q", *b.text.Load())
		}
		h.Close()
	})
}

// A slow read is repeated after nine times as long.
func TestASlowPageIsReadLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{}), atomic.Int64{}
		_, leave := watch(h, "now", "/", func(context.Context) ([]Fragment, error) {
			n.Add(1)
			wait(2 * time.Second)
			return nil, nil
		})
		defer leave()
		wait(59 * time.Second)
		if n.Load() != 3 {
			t.Errorf("a page that takes 2 s was read %d times in a minute, want 3", n.Load())
		}
		h.Close()
	})
}

func TestTroubleIsToldAndReadingGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{}), atomic.Int64{}
		b, leave := watch(h, "now", "/", func(ctx context.Context) ([]Fragment, error) {
			switch n.Add(1) {
			case 1, 2:
				return nil, errors.New("the database is away")
			case 3:
				<-ctx.Done() // nothing answers
				return nil, ctx.Err()
			}
			return []Fragment{{ID: "new", HTML: "back"}}, nil
		})
		defer leave()
		wait(3 * time.Minute)
		synctest.Wait()
		text := *b.text.Load()
		if strings.Count(text, "the database is away") != 1 || !strings.Contains(text, "deadline exceeded") ||
			!strings.Contains(text, `"html":"back"`) ||
			!strings.HasSuffix(strings.TrimRight(text, "\n"), "still here") ||
			!strings.Contains(text, "event: trouble\ndata: {\"text\":\"\"}") {
			t.Errorf("the stream is\n%s", text)
		}
		h.Close()
	})
}

func TestStreamsHaveABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{Most: 2}), atomic.Int64{}
		_, leave := watch(h, "now", "/", counted(&n))
		_, second := watch(h, "now", "/", counted(&n))
		synctest.Wait()
		b, third := watch(h, "now", "/", counted(&n))
		synctest.Wait()
		if b.status != http.StatusServiceUnavailable || b.header.Get("Retry-After") == "" {
			t.Errorf("the third of two streams is %d", b.status)
		}
		third()
		leave()
		if b, leave = watch(h, "now", "/", counted(&n)); h.Streams() > 2 {
			t.Errorf("%d streams are open", h.Streams())
		}
		synctest.Wait()
		if b.status != 0 {
			t.Errorf("a stream after one has ended is %d", b.status)
		}
		leave()
		second()
		h.Close()
		if h.Streams() != 0 {
			t.Errorf("%d streams are left", h.Streams())
		}
	})
}

func TestSignsOfLifeAndTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{})
		b, leave := watch(h, "now", "/", func(context.Context) ([]Fragment, error) { return nil, nil })
		wait(46 * time.Second)
		synctest.Wait()
		text := *b.text.Load()
		if strings.Count(text, ": still here") != 3 || !strings.HasPrefix(text, "retry: 2000\n") {
			t.Errorf("the stream is %q", text)
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		for lines.Scan() {
			if line := lines.Text(); line != "" && !strings.Contains(line, ": ") {
				t.Errorf("the line %q is none of an event", line)
			}
		}
		h.Close()
		h.Close()
		synctest.Wait()
		if h.Streams() != 0 {
			t.Error("a stream has outlived the hub")
		}
		leave()
		late := newBrowser()
		_ = h.Serve(late, httptest.NewRequest(http.MethodGet, "/", nil), Page{Kind: "now", Key: "/"})
		if late.status != http.StatusServiceUnavailable {
			t.Errorf("a stream of a closed hub is %d", late.status)
		}
	})
}

// Nothing is written to a viewer who may no longer see the page: neither changes, nor the comments of a quiet stream,
// which ends too. Other viewers of the page keep their streams.
func TestAStreamEndsWithTheRightToLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := func(context.Context) ([]Fragment, error) { return nil, nil }
		h, n := New(Options{}), atomic.Int64{}
		_, stays := watch(h, "now", "/", counted(&n))
		defer stays()
		for what, c := range map[string]struct {
			read  Read
			ends  time.Duration // after the right was withdrawn
			shows int           // fragments until then
		}{"/": {counted(&n), time.Second, 6}, "/quiet": {quiet, 15 * time.Second, 0}} {
			var out atomic.Bool
			b, leave := watchWith(h, Page{"now", what, c.read, func() bool { return !out.Load() }})
			wait(5500 * time.Millisecond)
			out.Store(true)
			before := b.fragments()
			wait(c.ends)
			synctest.Wait()
			if streams := h.Streams(); streams != 1 || b.fragments() != before || before < c.shows {
				t.Errorf("%s: %d streams are open, and the viewer has got %d and then %d fragments", what, streams,
					before, b.fragments()-before)
			}
			leave()
		}
		h.Close()
	})
}

// A stream ends after a while.
func TestAStreamDoesNotLastForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := New(Options{}), atomic.Int64{}
		_, leave := watch(h, "now", "/", counted(&n))
		wait(10*time.Minute - time.Second)
		if h.Streams() != 1 {
			t.Error("the stream has ended early")
		}
		wait(2 * time.Second)
		synctest.Wait()
		if h.Streams() != 0 {
			t.Error("the stream goes on")
		}
		leave()
		h.Close()
	})
}

// If a read panics, or ends its goroutine, the viewers get the error, and the page is read again.
func TestReadThatFailsEndsNoLoop(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("no text") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, reads := New(Options{}), 0
				defer h.Close()
				b, end := watch(h, "letter", "/dead/1", func(context.Context) ([]Fragment, error) {
					if reads++; reads == 1 {
						fail()
					}
					return []Fragment{{ID: "a", HTML: "b"}}, nil
				})
				wait(time.Minute)
				end()
				if text := *b.text.Load(); !strings.Contains(text, "This page failed.") || b.fragments() != 1 {
					t.Errorf("the browser has %q", text)
				}
			})
		})
	}
}
