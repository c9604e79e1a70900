package live

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
)

// Fragment is a part of a page that changes by itself.
type Fragment struct {
	ID, HTML string
	Sum      string // two fragments with the same Sum are equal; "" means the HTML
}

// Read reads a page.
type Read func(ctx context.Context) ([]Fragment, error)

// Options are the options of a Hub. Every zero is a default.
type Options struct {
	Most     int           // streams at once; 0 is 1,000
	Pace     time.Duration // between two reads of a kind of page; 0 is a second
	Beat     time.Duration // between comments on a stream; 0 is 15 seconds
	Slowest  time.Duration // a browser that does not read for this long is cut off; 0 is 10 seconds
	Patience time.Duration // of one read; 0 is 10 seconds
	Log      *slog.Logger  // for reads that panic or do not return; nil: no log
	Longest  time.Duration // of a stream, after which the browser has to connect again; 0 is 10 minutes
}

// Hub has the loops, and the streams that they serve. Safe for concurrent use.
type Hub struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	group  *run.Group

	mu      sync.Mutex
	streams int
	faults  handlers.Faults
	loops   map[string]*loop
}

// New returns a Hub. Close ends it.
func New(o Options) *Hub {
	o.Most = or(o.Most, 1000)
	o.Pace, o.Beat = or(o.Pace, time.Second), or(o.Beat, 15*time.Second)
	o.Slowest, o.Patience = or(o.Slowest, 10*time.Second), or(o.Patience, 10*time.Second)
	o.Longest = or(o.Longest, 10*time.Minute)
	o.Log = or(o.Log, slog.New(slog.DiscardHandler))
	h := &Hub{o: o, loops: map[string]*loop{}}
	//nolint:forbidigo // loops live until Close, and serve many requests
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.group = run.NewGroup(h.ctx)
	return h
}

func or[T comparable](value, standard T) T {
	var zero T
	if value == zero {
		return standard
	}
	return value
}

// Close ends all streams and loops, and returns when the loops have ended. It may be called more than once.
func (h *Hub) Close() {
	h.mu.Lock()
	h.cancel()
	h.mu.Unlock()
	_ = h.group.Wait() // a loop does not fail
}

// Streams returns how many streams are open.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// loop reads the pages of one kind.
type loop struct {
	hub   *Hub
	kind  string
	more  run.Nudge // a page has its first viewer
	pages map[string]*open
	guest handlers.Guest // calls the reads, which run the program's types and functions on bodies and states
}

// open is a page with viewers. Its fields are guarded by the hub's mutex.
type open struct {
	read    Read
	viewers map[*viewer]bool
	due     time.Time
	news    news
}

// news is the newest version of a page.
type news struct {
	fragments []Fragment
	sums      []uint64
	trouble   error
	read      bool // at least once
}

var seed = maphash.MakeSeed()

func newsOf(fragments []Fragment) news {
	n := news{fragments: fragments, read: true}
	for _, f := range fragments {
		n.sums = append(n.sums, maphash.String(seed, or(f.Sum, f.HTML)))
	}
	return n
}

// join adds a viewer of a page, and starts the loop of its kind if it does not run. It returns nil if there are too
// many viewers, or the hub is closed.
func (h *Hub) join(kind, key string, read Read) *viewer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= h.o.Most || h.ctx.Err() != nil {
		return nil
	}
	h.streams++
	l := h.loops[kind]
	if l == nil {
		l = &loop{hub: h, kind: kind, more: run.NewNudge(), pages: map[string]*open{}}
		h.loops[kind] = l
		defer h.group.Go(l.run)
	}
	p := l.pages[key]
	if p == nil {
		p = &open{read: read, viewers: map[*viewer]bool{}}
		l.pages[key] = p
		l.more.Send()
	}
	v := &viewer{page: p, loop: l, key: key, nudge: run.NewNudge(), sent: map[string]uint64{}}
	p.viewers[v] = true
	if p.news.read || p.news.trouble != nil {
		v.nudge.Send()
	}
	return v
}

func (h *Hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	if delete(v.page.viewers, v); len(v.page.viewers) == 0 {
		delete(v.loop.pages, v.key)
	}
}

// run reads pages until no page has a viewer.
func (l *loop) run(ctx context.Context) error {
	for next := (time.Time{}); ; {
		p, due := l.choose()
		if p == nil {
			return nil
		}
		if due.Before(next) {
			due = next
		}
		if wait := time.Until(due); wait > 0 {
			if run.Wait(ctx, wait, l.more) == run.Ended {
				return nil
			}
			continue
		}
		next = time.Now().Add(l.hub.o.Pace)
		l.load(ctx, p)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// choose returns the page that is to be read first, and when. Without a page the loop ends: the next viewer starts a
// new one.
func (l *loop) choose() (first *open, due time.Time) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	for _, p := range l.pages {
		if first == nil || p.due.Before(first.due) {
			first = p
		}
	}
	if first == nil {
		delete(l.hub.loops, l.kind)
		return nil, due
	}
	return first, first.due
}

// slack is the time for a read to return after its context ended.
const slack = 5 * time.Second

// rest is how many times longer than a read a loop waits before it reads the same page again.
const rest = 9

// load reads a page, and wakes its viewers.
func (l *loop) load(ctx context.Context, p *open) {
	ctx, cancel := context.WithTimeout(ctx, l.hub.o.Patience)
	defer cancel()
	began := time.Now()
	type result struct {
		fragments []Fragment
		err       error
	}
	got, wrong := handlers.Ask(&l.guest, l.hub.o.Patience+slack, func() (r result) {
		r.fragments, r.err = p.read(ctx)
		return r
	})
	fragments, err := got.fragments, got.err
	if wrong != nil {
		l.hub.faults.Log(wrong, l.hub.o.Log, "edda: ui: a page failed", "page", l.kind)
		//nolint:revive // a sentence of the page
		err = errors.New("This page failed. The log of the program has the details.")
	}
	took := time.Since(began)
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	p.due = time.Now().Add(max(l.hub.o.Pace-took, rest*took))
	if err != nil {
		p.news.trouble = err
	} else {
		p.news = newsOf(fragments)
	}
	for v := range p.viewers {
		v.nudge.Send()
	}
}
