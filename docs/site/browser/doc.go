// Package browser has a real Chromium read the documentation site: every page on a desk and on a phone, light, dark and
// in high contrast, with axe-core looking for barriers; the search, by keyboard alone and also from a disk; copying,
// the stored colours, and the pages without JavaScript.
//
//	cd docs/site/browser && go test .     # or "make web", which installs chromium where apt-get may
//	SCREENSHOTS=/tmp/shots go test .      # keeps pictures of some pages
//
// It is a module of its own, so that a build of the site does not depend on the driver of the browser.
package browser
