// Package browser has a real Chromium order in the shop of examples/web, through the form as a visitor does: with
// JavaScript, without it, with what cannot be ordered, on a small screen and a dark one.
//
//	cd examples/web/browser && go test .          # or "make web", which installs chromium where apt-get may
//	SCREENSHOTS=/tmp/shots go test .              # keeps what was seen
//
// It is a module of its own, so that what drives the browser is nothing that the library needs.
package browser
