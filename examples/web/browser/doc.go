// Package browser has a real Chromium order in the shop of examples/web, through the form as a visitor does: with
// JavaScript, without it, with an invalid order, on a small screen and a dark one.
//
//	cd examples/web/browser && go test .          # or "make web", which installs chromium where apt-get may
//	SCREENSHOTS=/tmp/shots go test .              # keeps pictures of the pages
//
// It is a module of its own, so that the library does not depend on the driver of the browser.
package browser
