package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/edda-go/edda/eddaui/browser/chrome"
)

// library is the site of the work tree, on a disk and behind a server of files.
type library struct {
	dir, version, url string
	pages             []string
}

func openLibrary(t *testing.T) library {
	t.Helper()
	l := library{dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "run", ".", "-out", l.dir)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the site: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "versions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Version string
		Pages   []string
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	l.version = all[0].Version
	l.pages = append(all[0].Pages, "guide/index.html")
	server := httptest.NewServer(http.FileServer(http.Dir(l.dir)))
	t.Cleanup(server.Close)
	l.url = server.URL + "/" + l.version + "/"
	return l
}

// look holds the settings of a reader's browser.
type look struct {
	name          string
	width, height int64
	scheme        string // of colours
	contrast      bool
	noScript      bool
}

// reader is a browser.
type reader struct {
	t   *testing.T
	ctx context.Context
	url string
}

func newReader(t *testing.T, url string, l look) *reader {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"}}
	if l.contrast {
		features = append(features, &emulation.MediaFeature{Name: "prefers-contrast", Value: "more"})
	}
	ctx := chrome.Open(t, chrome.Options{Width: l.width, Height: l.height, NoScript: l.noScript,
		Within: 10 * time.Minute, Features: features})
	return &reader{t: t, ctx: ctx, url: url}
}

func (r *reader) do(what string, actions ...chromedp.Action) {
	r.t.Helper()
	if err := chromedp.Run(r.ctx, actions...); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

func (r *reader) open(page string) {
	r.t.Helper()
	r.do("open "+page, chromedp.Navigate(r.url+page), chromedp.WaitVisible("main", chromedp.ByQuery))
}

// script evaluates an expression on the page, and returns its value as text.
func (r *reader) script(expression string) (value string) {
	r.t.Helper()
	r.do(expression, chromedp.Evaluate("String("+expression+")", &value))
	return value
}

// until waits for an expression to be true.
func (r *reader) until(what, expression string) {
	r.t.Helper()
	ctx, end := context.WithTimeout(r.ctx, 20*time.Second)
	defer end()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingMutation())); err != nil {
		r.t.Fatalf("%s: %v; the focus is on %s, and the page says %.300s", what, err,
			r.script(`document.activeElement.outerHTML.slice(0, 200)`),
			r.script(`document.querySelector("dialog[open], main").innerText`))
	}
}

// shoot keeps a picture of the window if SCREENSHOTS names a folder.
func (r *reader) shoot(name string) {
	r.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	r.do("take a picture", chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		r.t.Fatal(err)
	}
}
