package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// comeBack is when a browser whose stream was cut tries again.
const comeBack = 2 * time.Second

// viewer is one stream.
type viewer struct {
	loop  *loop
	page  *open
	key   string
	nudge run.Nudge

	out     http.ResponseWriter
	sent    map[string]uint64 // what the browser has, by the fragments' ids
	trouble string            // what it was told last
	wrote   time.Time
}

// Serve writes the news of a page until the browser goes or the hub is closed. kind is that of the page, and key its
// address with all that decides how it looks; of viewers with one key, the first one's read serves all.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, kind, key string, read Read) error {
	v := h.join(kind, key, read)
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open; reload this one to see what is new", http.StatusServiceUnavailable)
		return nil
	}
	defer h.leave(v)
	v.out = w
	ctx, cancel := context.WithTimeout(r.Context(), h.o.Longest)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)() //nolint:contextcheck // a stream ends with the hub, too
	if err := v.follow(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("a stream was cut: %w", err)
	}
	return nil
}

func (v *viewer) follow(ctx context.Context) error {
	head := v.out.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no") // nginx would wait for more
	// a stream may be open for days; a server without deadlines has none to clear
	_ = http.NewResponseController(v.out).SetReadDeadline(time.Time{})
	begin := fmt.Sprintf("retry: %d\n\nevent: clock\ndata: %d\n\n", comeBack.Milliseconds(), time.Now().UnixMilli())
	if err := v.write(begin); err != nil {
		return err
	}
	for { // news that changes nothing on the page is no sign of life
		var err error
		switch run.Wait(ctx, time.Until(v.wrote.Add(v.loop.hub.o.Beat)), v.nudge) {
		case run.Ended:
			return nil
		case run.Nudged:
			err = v.tell()
		case run.TimedOut:
			err = v.write(": still here\n\n")
		}
		if err != nil {
			return err
		}
	}
}

// tell writes what the browser does not have yet.
func (v *viewer) tell() error {
	hub := v.loop.hub
	hub.mu.Lock()
	n := v.page.news
	hub.mu.Unlock()
	trouble := ""
	if n.trouble != nil {
		trouble = n.trouble.Error()
	}
	text := ""
	if trouble != v.trouble {
		v.trouble = trouble
		text = event("trouble", map[string]string{"text": trouble})
	}
	for at, f := range n.fragments {
		if sum, ok := v.sent[f.ID]; ok && sum == n.sums[at] {
			continue
		}
		v.sent[f.ID] = n.sums[at]
		text += event("fragment", map[string]string{"id": f.ID, "html": f.HTML})
	}
	if text == "" {
		return nil
	}
	return v.write(text)
}

// event writes an event whose data is JSON, which is one line.
func event(name string, data any) string {
	line, err := json.Marshal(data)
	if err != nil {
		line = []byte(strconv.Quote(err.Error()))
	}
	return "event: " + name + "\ndata: " + string(line) + "\n\n"
}

// write sends text at once. A browser that does not read for long is cut.
func (v *viewer) write(text string) error {
	v.wrote = time.Now()
	out := http.NewResponseController(v.out)
	_ = out.SetWriteDeadline(time.Now().Add(v.loop.hub.o.Slowest)) // a server under a test may know none
	if _, err := v.out.Write([]byte(text)); err != nil {
		return err
	}
	return out.Flush()
}
