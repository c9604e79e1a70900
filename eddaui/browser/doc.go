// Package browser has a real Chromium look at the pages of eddaui over the worlds of edda demo: with JavaScript and
// without, on a desk and on a phone, light and dark. axe-core looks for barriers on each page and in each form. A page
// of each kind has to look as a picture of it, and a live update must take away neither the focus nor typed text. What
// an operator does with the pages are checks with a name each; and texts that are meant to do harm do none.
//
//	cd eddaui/browser && go test .        # or "make web", which installs chromium where apt-get may
//	go test . -run pages -update          # takes the pictures anew, that of the README among them
//	SCREENSHOTS=/tmp/shots go test .      # keeps what was seen
//
// Before a picture is taken, testdata/freeze.js gives the page fonts of its own, and puts fixed texts in the place of
// times, ids, hosts and durations.
//
// It is a module of its own, so that what drives the browser is nothing that the library needs. axe-core is fetched by
// npm in the version that package axe pins; AXE names a copy of axe.min.js where there is no network.
package browser
