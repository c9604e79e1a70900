package viewers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// open is an open page: the fragments that a browser would show, and how often its stream was cut.
type open struct {
	path string
	base string

	mu        sync.Mutex
	fragments map[string]string
	cut       int
}

// comeBack is when a stream that was cut is opened again. A browser waits longer.
const comeBack = 300 * time.Millisecond

// look keeps the page open until ctx ends.
func (o *open) look(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = o.follow(ctx) // its server is killed every now and then
		o.mu.Lock()
		o.cut++
		o.mu.Unlock()
		_ = run.Sleep(ctx, comeBack) // its end is the loop's
	}
	return nil
}

func (o *open) follow(ctx context.Context) error {
	body, err := get(ctx, o.base+o.path+"?live=1")
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 4<<20)
	for name := ""; lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = text
			continue
		}
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || name != "fragment" {
			continue
		}
		var f struct{ ID, HTML string }
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return fmt.Errorf("an event of %s: %w", o.path, err)
		}
		o.mu.Lock()
		o.fragments[f.ID] = f.HTML
		o.mu.Unlock()
	}
	return lines.Err()
}

// cuts is how often the stream was cut.
func (o *open) cuts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cut
}

// get asks for something that must be there.
func get(ctx context.Context, url string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("GET %s is %s", url, answer.Status)
	}
	return answer.Body, nil
}

// clocks are what changes on a page when nothing but the time does.
var clocks = regexp.MustCompile(`<time [^>]*>[^<]*</time>`)

// stale names a fragment that differs from the page as it is loaded now, "" if there is none. A page without any
// fragment has never been seen.
func (o *open) stale(page string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.fragments) == 0 {
		return "everything"
	}
	page = clocks.ReplaceAllString(page, "")
	for _, id := range slices.Sorted(maps.Keys(o.fragments)) {
		if !strings.Contains(page, clocks.ReplaceAllString(o.fragments[id], "")) {
			return id
		}
	}
	return ""
}
