// Package browser opens the pages of eddaui in a real Chromium over the worlds of edda demo: with JavaScript and
// without, on a desk and on a phone, light and dark. axe-core looks for barriers on each page and in each form. A page
// of each kind is compared with a picture, and a live update must remove neither the focus nor typed text. Tasks of an
// operator are named checks; and malicious texts must have no effect.
//
//	cd eddaui/browser && go test .        # or "make web", which installs chromium where apt-get may
//	go test . -run pages -update          # takes new pictures, including that of the README
//	SCREENSHOTS=/tmp/shots go test .      # keeps screenshots
//
// Before a picture is taken, testdata/freeze.js gives the page fonts of its own, and replaces times, ids, hosts and
// durations by fixed texts.
//
// It is a module of its own, so that the library does not depend on the browser driver. axe-core is fetched by npm in
// the version that package axe pins; AXE names a copy of axe.min.js if there is no network.
package browser
