// Package chrome opens a real Chromium for the tests of pages.
//
//	ctx := chrome.Open(t, chrome.Options{Width: 1280, Height: 900, Within: time.Minute})
//	err := chromedp.Run(ctx, chromedp.Navigate(url))
//
// # Promise
//
// Open returns the context of a browser with the given look, which draws text the same way on every machine. It ends
// with its test.
//
// # Failures
//
// A page that violates its own policy, throws, or misses a file fails its test, unless the caller declares that
// harmless.
package chrome
