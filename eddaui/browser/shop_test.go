package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"

	"github.com/edda-go/edda/eddaui/browser/chrome"
)

// shop is a running program with the pages.
type shop struct {
	t       *testing.T
	url     string // of the first page
	tree    string // a conversation
	group   string // of dead letters
	letter  string // of the group
	run     string // of a manifest
	command string // the command edda
	env     []string
	stop    func()
}

var (
	address  = regexp.MustCompile(`http://[0-9.:]+/edda/`)
	variable = regexp.MustCompile(`(?:DATABASE_URL|EDDA_SCHEMA)=\S+`)
	tree     = regexp.MustCompile(`conversations/\S+`)
)

var programs string // where the command is, once it is built

// built builds the command once.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "edda-browser"); err != nil {
		return "", err
	}
	programs = dir
	build := exec.Command("go", "build", "-C", "../..", "-o", filepath.Join(dir, "edda"), "./cmd/edda")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

// openShop runs the shop on a free port. stop ends it as a deployment would.
func openShop(t *testing.T) *shop {
	t.Helper()
	s := openWorld(t, "shop")
	counted := regexp.MustCompile(`"failed_24h": [1-9]`) // a process adds that every ten seconds
	patience := time.After(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); !counted.MatchString(s.read("sagas.json")); {
		select {
		case <-tick.C:
		case <-patience:
			t.Fatal("what the sagas did is not counted")
		}
	}
	s.group = s.find("dead", regexp.MustCompile(`(dead/groups/[0-9a-f]{12})">[^<]*mailbox`))
	s.letter = s.find(s.group, regexp.MustCompile(`(dead/\d+)">`))
	s.run = s.find("manifests/night%2Fsettle", regexp.MustCompile(`(runs/[0-9a-f-]{36})"`))
	return s
}

// openWorld runs the program with a world other than the shop.
func openWorld(t *testing.T, world string) *shop {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, command: filepath.Join(dir, "edda")}
	run := exec.Command(s.command, "demo", "--pages", "127.0.0.1:0", "--world", world)
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = run.Process.Signal(syscall.SIGTERM)
		if err := run.Wait(); err != nil {
			t.Errorf("the world %s: %v", world, err)
		}
	}
	t.Cleanup(s.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.env = append(s.env, variable.FindAllString(lines.Text(), -1)...)
		if found := tree.FindString(lines.Text()); found != "" {
			s.tree = found
		}
		if s.url = address.FindString(lines.Text()); s.url != "" {
			return s
		}
	}
	t.Fatalf("the world %s has not told its address", world)
	return nil
}

// read returns the text of a page.
func (s *shop) read(path string) string {
	s.t.Helper()
	answer, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// find returns the match of an expression in a page.
func (s *shop) find(path string, what *regexp.Regexp) string {
	s.t.Helper()
	found := what.FindStringSubmatch(s.read(path))
	if found == nil {
		s.t.Fatalf("%s has no %v", path, what)
	}
	return found[1]
}

// edda runs the command on the shop's database, as an operator does in a shell.
func (s *shop) edda(args ...string) {
	s.t.Helper()
	command := exec.Command(s.command, args...)
	command.Env = append(os.Environ(), s.env...)
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("edda %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// visitor is a browser with one page.
type visitor struct {
	t   *testing.T
	ctx context.Context
	url string
}

// look is how a visitor's browser shows the page.
type look struct {
	name          string
	width, height int64
	dark          bool
	noScript      bool
}

func newVisitor(t *testing.T, s *shop, l look) *visitor {
	t.Helper()
	colours := "light"
	if l.dark {
		colours = "dark"
	}
	ctx := chrome.Open(t, chrome.Options{Width: l.width, Height: l.height, NoScript: l.noScript,
		Within:   3 * time.Minute,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
		Flags:    []chromedp.ExecAllocatorOption{chromedp.Flag("host-resolver-rules", "MAP shop.example 127.0.0.1")},
		Harmless: func(e *log.Entry) bool { // answers that refuse, and the browser's remarks about a page without TLS
			return e.Source == log.SourceNetwork ||
				strings.Contains(e.Text, "Opener-Policy header has been ignored")
		}})
	return &visitor{t: t, ctx: ctx, url: s.url}
}

// with returns the visitor for a different test.
func (v *visitor) with(t *testing.T) *visitor {
	other := *v
	other.t = t
	return &other
}

func (v *visitor) do(what string, actions ...chromedp.Action) {
	v.t.Helper()
	if err := chromedp.Run(v.ctx, actions...); err != nil {
		v.t.Fatalf("%s: %v", what, err)
	}
}

// open opens a page.
func (v *visitor) open(path string) {
	v.t.Helper()
	v.do("open "+path, chromedp.Navigate(v.url+path), chromedp.WaitVisible("footer", chromedp.ByQuery))
}

// text returns the text of an element.
func (v *visitor) text(selector string) (text string) {
	v.t.Helper()
	v.do("read "+selector, chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// script returns the value of an expression, as a text.
func (v *visitor) script(expression string) (value string) {
	v.t.Helper()
	v.do("evaluate "+expression, chromedp.Evaluate(`String(`+expression+`)`, &value))
	return value
}

// until waits until an expression is true.
func (v *visitor) until(what, expression string) {
	v.t.Helper()
	v.within(30*time.Second, what, expression)
}

func (v *visitor) within(most time.Duration, what, expression string) {
	v.t.Helper()
	end := time.Now().Add(most)
	for {
		err := chromedp.Run(v.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(2*time.Second)))
		if err == nil {
			return
		}
		if time.Now().After(end) || v.ctx.Err() != nil { // a page may still be loading
			v.t.Fatalf("%s: %v", what, err)
		}
	}
}

// shoot saves a picture in the directory SCREENSHOTS.
func (v *visitor) shoot(name string) {
	v.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	v.do("take a picture", chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		v.t.Fatal(err)
	}
}
