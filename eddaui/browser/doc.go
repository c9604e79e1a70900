// Package browser has a real Chromium look at the pages of eddaui over the shop of examples/ui: with JavaScript and
// without, on a desk and on a phone, light and dark. axe-core looks for barriers on each page and in each
// form, and a live update must take away neither the focus nor what somebody has typed.
//
//	cd eddaui/browser && go test .        # or "make web", which installs chromium where apt-get may
//	SCREENSHOTS=/tmp/shots go test .      # keeps what was seen
//
// It is a module of its own, so that what drives the browser is nothing that the library needs. axe-core is fetched by
// npm in the version that axe.go pins; AXE names a copy of axe.min.js where there is no network.
package browser
