// Package browser has a real Chromium read the documentation site: every page on a desk and on a phone, light, dark and
// in high contrast, with axe-core looking for barriers; the search, by keyboard alone and also from a disk; copying,
// the colours that are kept, and what there is without JavaScript.
//
//	cd docs/site/browser && go test .     # or "make web", which installs chromium where apt-get may
//	SCREENSHOTS=/tmp/shots go test .      # keeps pictures of some pages
//
// It is a module of its own, so that what drives the browser is nothing that building the site needs.
package browser
