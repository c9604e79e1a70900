package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// comeBack is when a browser whose stream was cut off tries again.
const comeBack = 2 * time.Second

// viewer is one stream.
type viewer struct {
	loop  *loop
	page  *open
	key   string
	nudge run.Nudge
	may   func() bool

	out     http.ResponseWriter
	sent    map[string]uint64 // versions that the browser has, by the fragments' ids
	trouble string            // the last error that was sent
	wrote   time.Time
}

// Page is a page that a browser follows.
type Page struct {
	Kind string
	Key  string      // its address, with everything that decides its contents
	Read Read        // for viewers with one key, the first one's Read serves all
	May  func() bool // reports whether this viewer may still see it; it is called before each write after the first
}

// Serve writes the changes of a page until the browser leaves, the viewer may no longer see the page, or the hub is
// closed.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, p Page) error {
	v := h.join(p.Kind, p.Key, p.Read)
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open; reload this page to see changes", http.StatusServiceUnavailable)
		return nil
	}
	defer h.leave(v)
	v.out, v.may = w, p.May
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
	head.Set("X-Accel-Buffering", "no") // otherwise nginx would wait for more
	// a stream may be open for days; on a server without deadlines this does nothing
	_ = http.NewResponseController(v.out).SetReadDeadline(time.Time{})
	begin := fmt.Sprintf("retry: %d\n\nevent: clock\ndata: %d\n\n", comeBack.Milliseconds(), time.Now().UnixMilli())
	if err := v.write(begin); err != nil {
		return err
	}
	for { // a new version without changes on the page does not count as a sign of life
		text := ": still here\n\n"
		switch run.Wait(ctx, time.Until(v.wrote.Add(v.loop.hub.o.Beat)), v.nudge) {
		case run.Ended:
			return nil
		case run.Nudged:
			text = v.news()
		case run.TimedOut:
		}
		if text == "" {
			continue
		}
		if !v.may() {
			return nil
		}
		if err := v.write(text); err != nil {
			return err
		}
	}
}

// news returns the events that the browser does not have yet.
func (v *viewer) news() (text string) {
	hub := v.loop.hub
	hub.mu.Lock()
	n := v.page.news
	hub.mu.Unlock()
	trouble := ""
	if n.trouble != nil {
		trouble = n.trouble.Error()
	}
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
	return text
}

// event writes an event whose data is JSON, which is one line.
func event(name string, data any) string {
	line, err := json.Marshal(data)
	if err != nil {
		line = []byte(strconv.Quote(err.Error()))
	}
	return "event: " + name + "\ndata: " + string(line) + "\n\n"
}

// write sends text at once. A browser that does not read for long is cut off.
func (v *viewer) write(text string) error {
	v.wrote = time.Now()
	out := http.NewResponseController(v.out)
	_ = out.SetWriteDeadline(time.Now().Add(v.loop.hub.o.Slowest)) // a server under a test may not support deadlines
	if _, err := v.out.Write([]byte(text)); err != nil {
		return err
	}
	return out.Flush()
}
