package chrome

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Options are the options of a browser.
type Options struct {
	Width, Height int64         // in pixels; below 600 it is a phone
	NoScript      bool          // pages run no JavaScript
	Within        time.Duration // the browser is ended after this time
	Features      []*emulation.MediaFeature
	Flags         []chromedp.ExecAllocatorOption // further flags of the command line
	Harmless      func(*log.Entry) bool          // reports whether an error of the browser is harmless; nil: never
}

// Open starts a browser.
func Open(t *testing.T, o Options) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("disable-lcd-text", true), chromedp.Flag("force-color-profile", "srgb"))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), append(options, o.Flags...)...)
	t.Cleanup(endAllocator)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	ctx, endTime := context.WithTimeout(ctx, o.Within)
	t.Cleanup(endTime)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && (o.Harmless == nil || !o.Harmless(e.Entry)) {
				t.Errorf("the browser complains: %s %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			t.Errorf("a script failed: %s", e.ExceptionDetails.Error())
		}
	})
	err := chromedp.Run(ctx, log.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(o.Width, o.Height, 1, o.Width < 600),
		emulation.SetEmulatedMedia().WithFeatures(o.Features), emulation.SetScriptExecutionDisabled(o.NoScript))
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	return ctx
}
