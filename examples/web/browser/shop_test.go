package browser

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var address = regexp.MustCompile(`http://[0-9.:]+`)

// openShop builds and runs the shop on a free port. stop ends it as a deployment would.
func openShop(t *testing.T) (url string, stop func()) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "web")
	build := exec.Command("go", "build", "-C", "../../..", "-o", program, "./examples/web")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the shop: %v\n%s", err, out)
	}
	shop := exec.Command(program, "-address", "127.0.0.1:0", "-pause", "1500ms")
	shop.Stderr = os.Stderr
	out, err := shop.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = shop.Process.Signal(syscall.SIGTERM)
		if err := shop.Wait(); err != nil {
			t.Errorf("the shop: %v", err)
		}
	}
	t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url := address.FindString(lines.Text()); url != "" {
			return url, stop
		}
	}
	t.Fatal("the shop has not told its address")
	return "", nil
}

// visitor is a browser with one page.
type visitor struct {
	t   *testing.T
	ctx context.Context
	url string
}

// look holds the settings of a visitor's browser.
type look struct {
	width, height int64
	dark          bool
	noScript      bool
}

func newVisitor(t *testing.T, url string, l look) *visitor {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(endAllocator)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	ctx, endTime := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(endTime)
	chromedp.ListenTarget(ctx, func(event any) { // a page must not break its own policy, or throw
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
				t.Errorf("the browser complains: %s %s", e.Entry.Source, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			t.Errorf("a script failed: %s", e.ExceptionDetails.Error())
		}
	})
	v := &visitor{t: t, ctx: ctx, url: url}
	colours := "light"
	if l.dark {
		colours = "dark"
	}
	v.do("begin", log.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(l.width, l.height, 1, l.width < 600),
		emulation.SetEmulatedMedia().WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}),
		emulation.SetScriptExecutionDisabled(l.noScript))
	return v
}

func (v *visitor) do(what string, actions ...chromedp.Action) {
	v.t.Helper()
	if err := chromedp.Run(v.ctx, actions...); err != nil {
		v.t.Fatalf("%s: %v", what, err)
	}
}

// text returns the text of an element.
func (v *visitor) text(selector string) (text string) {
	v.t.Helper()
	v.do("read "+selector, chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// attribute returns an attribute of an element, "" when it is not set.
func (v *visitor) attribute(selector, name string) (value string) {
	v.t.Helper()
	v.do("read "+selector, chromedp.AttributeValue(selector, name, &value, nil, chromedp.ByQuery))
	return value
}

// until waits until an element has the text want.
func (v *visitor) until(selector, want string) {
	v.t.Helper()
	for text := ""; text != want; {
		text = v.text(selector)
		if v.ctx.Err() != nil {
			v.t.Fatalf("%s says %q, want %q", selector, text, want)
		}
	}
}

// shoot keeps a picture where SCREENSHOTS says.
func (v *visitor) shoot(name string) {
	v.t.Helper()
	var png []byte
	v.do("take a picture", chromedp.FullScreenshot(&png, 100))
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			v.t.Fatal(err)
		}
	}
}

// order fills in the form and sends it.
func (v *visitor) order(quantity, note string) {
	v.t.Helper()
	v.do("order", chromedp.Navigate(v.url+"/"),
		chromedp.SetAttributeValue("#quantity", "value", quantity, chromedp.ByQuery),
		chromedp.SendKeys("#note", note, chromedp.ByQuery),
		chromedp.Click("form button", chromedp.ByQuery),
		chromedp.WaitVisible("#headline", chromedp.ByQuery))
}
