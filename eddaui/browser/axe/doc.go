// Package axe looks for barriers on a page that is open in a browser of chromedp, by axe-core and the rules of WCAG 2.2
// AA.
//
//	script := axe.Read(t)
//	found, err := axe.Barriers(ctx, script) // ctx is of chromedp
//
// axe-core is fetched by npm in the version that is pinned here; AXE names a copy of axe.min.js if there is no
// network. The package is for tests: a test fails if axe-core cannot be fetched.
package axe
