package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/edda-go/edda/bus"
)

const (
	comeBack   = 2 * time.Second  // a browser whose stream was cut
	slowest    = 10 * time.Second // a browser that does not read
	mostStream = 10_000           // pages of this process that follow an order
	overMark   = "over"           // the id of the last event
)

var errBeat = errors.New("time for a sign of life")

// stream is the events of one page.
type stream struct {
	*site
	w      http.ResponseWriter
	out    *http.ResponseController
	id     string // of the order
	cursor bus.WatchCursor
	last   news
	told   bool
}

// events follows an order until it is over, the browser goes, or the server is about to stop.
func (s *site) events(w http.ResponseWriter, r *http.Request) {
	id, ok := orderID(r)
	v, found, err := view{}, false, error(nil)
	if ok {
		v, found, err = s.look(r.Context(), id)
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
		return
	case !found:
		http.NotFound(w, r)
		return
	case r.Header.Get("Last-Event-ID") == overMark:
		w.WriteHeader(http.StatusNoContent) // makes a browser that has shown the end stop reconnecting
		return
	}
	if s.streams.Add(1) > mostStream {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages follow orders; reload this one", http.StatusServiceUnavailable)
		return
	}
	defer s.streams.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)() //nolint:contextcheck // a stream ends with the server, too
	t := &stream{site: s, w: w, out: http.NewResponseController(w), id: v.ID}
	t.cursor, _ = bus.ParseWatchCursor(r.Header.Get("Last-Event-ID")) // an invalid cursor is the zero cursor
	if err := t.follow(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("web: a stream was cut", "order", id, "error", err)
	}
}

// follow writes changes to the browser until no further change can follow.
func (t *stream) follow(ctx context.Context) error {
	if err := t.begin(); err != nil {
		return err
	}
	for {
		if err := t.watch(ctx); !errors.Is(err, errBeat) {
			return err
		}
		if err := t.write(": still here\n\n"); err != nil {
			return err
		}
	}
}

// watch sends every change to the page until the order is over, or a heartbeat is due.
func (t *stream) watch(ctx context.Context) error {
	// ends the wait for news, but does not interrupt a write
	untilBeat, cancel := context.WithTimeoutCause(ctx, t.beat, errBeat)
	defer cancel()
	for seen, err := range t.bus.Watch(untilBeat, orders, t.id, t.cursor) {
		if err != nil {
			return err
		}
		if seen.Status == bus.InstanceLiving {
			err = t.tellState(seen)
		} else {
			err = t.tellRow(ctx)
		}
		if err != nil || t.last.Over {
			return err
		}
	}
	t.cursor = bus.WatchCursor{} // the browser's cursor was no version of this order
	return errBeat
}

func (t *stream) tellState(seen bus.WatchEvent) error {
	var state Order
	if err := seen.Into(&state); err != nil {
		return err
	}
	t.cursor = seen.Cursor()
	return t.tell(t.cursor.String(), newsAt(state.At))
}

// tellRow handles an order without a saga: it has not begun, or its outcome is booked.
func (t *stream) tellRow(ctx context.Context) error {
	v, found, err := t.look(ctx, t.id)
	if err != nil || !found {
		return err
	}
	if v.Over {
		return t.tell(overMark, v.news)
	}
	if t.told {
		return nil
	}
	return t.tell("", v.news)
}

// begin sends the head, so that the browser's connection opens.
func (t *stream) begin() error {
	h := t.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would wait for more
	if err := t.out.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return t.write(fmt.Sprintf("retry: %d\n\n", comeBack.Milliseconds()))
}

// tell writes an event with the news n.
func (t *stream) tell(cursor string, n news) error {
	t.last, t.told = n, true
	data, err := json.Marshal(n) // on one line, as an event's data must be
	if err != nil {
		return err
	}
	return t.write(fmt.Sprintf("event: state\nid: %s\ndata: %s\n\n", cursor, data))
}

// write sends text at once. A browser that does not read for long is let go.
func (t *stream) write(text string) error {
	if err := t.out.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	if _, err := t.w.Write([]byte(text)); err != nil {
		return err
	}
	return t.out.Flush()
}
