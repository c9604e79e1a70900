// Package chrome opens a real Chromium for the tests of pages.
//
//	ctx := chrome.Open(t, chrome.Options{Width: 1280, Height: 900, Within: time.Minute})
//	err := chromedp.Run(ctx, chromedp.Navigate(url))
//
// # Promise
//
// Open returns the context of a browser that looks as asked, with letters that are drawn alike on every machine. It
// ends with its test.
//
// # Failures
//
// A page that breaks its own policy, throws, or misses a file fails its test, unless the caller says that it is
// harmless.
package chrome
