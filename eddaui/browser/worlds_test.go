package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A thousand messages from one sender are one line, which opens without JavaScript.
func TestAThousandSiblingsAreFolded(t *testing.T) {
	s := openWorld(t, "crowd")
	for _, l := range []look{desk, ways[3]} {
		v := newVisitor(t, s, l)
		v.open(s.tree)
		v.contains("#tree", "label.print", "×999", "50 dead", "949 handled")
		if rows := v.script(`document.querySelectorAll("#tree > ul > li > ul > li").length`); rows != "1" {
			t.Errorf("%s: they are %s lines", l.name, rows)
		}
		v.do("open it", chromedp.Click("#tree summary", chromedp.ByQuery),
			chromedp.WaitVisible(`#tree details li a[href*="dead/"]`, chromedp.ByQuery))
	}
}

// A conversation shows the messages through four endpoints and to another system.
func TestAConversationCrossesTheBorder(t *testing.T) {
	s := openWorld(t, "relayed")
	v := newVisitor(t, s, ways[1])
	v.open("find?q=2026-0001")
	v.head("2026-0001")
	v.click("timeline", "order.place")
	v.head("order.place")
	v.do("open the conversation", chromedp.Click(`a[href*="conversations/"]`, chromedp.ByQuery))
	v.head("and the messages that followed")
	for _, says := range [][]string{
		{"order.place", "handled by orders"}, {"payment.charge", "handled by payments"},
		{"stock.reserve", "handled by stock"}, {"parcel.ship", "handled by shipping"},
		{"order.sailed", "relayed by shop.events"}, {"mail.send", "waiting for mails"},
	} {
		v.contains("#tree", says...)
	}
}

// A hundred thousand letters are 300 lines within a second.
func TestAHundredThousandLettersAreGroupedAtOnce(t *testing.T) {
	s := openWorld(t, "dead")
	v := newVisitor(t, s, desk)
	best := 1e9
	for range 3 { // the machine may be busy once
		v.open("dead")
		var took float64
		v.do("read how long it took", chromedp.Evaluate(
			`(n => n.responseEnd - n.requestStart)(performance.getEntriesByType("navigation")[0])`, &took))
		best = min(best, took)
	}
	if best > 1000 {
		t.Errorf("the page took %.0f ms", best)
	}
	if rows := v.script(`document.querySelectorAll("#groups tbody tr").length`); rows != "300" {
		t.Errorf("%s groups are shown", rows)
	}
	v.contains("#groups", "messages failed for good, with 300 causes")
}

// No stored text becomes a script, an element or an external address; not when a page is opened, and not when an
// update inserts it.
func TestHostileTextsDoNothing(t *testing.T) {
	s := openWorld(t, "hostile")
	v := newVisitor(t, s, desk)
	paths := []string{"", "sagas", "manifests", "manifests/night%2Fknock", "limits", "processes", "endpoints/doors",
		"endpoints/callers", "find?q=%3Cscript%3Ewindow.hurt%3D1%3C%2Fscript%3E"}
	for _, list := range []string{"sagas/caller", "dead"} {
		v.open(list)
		var found []string
		v.do("read the links", chromedp.Evaluate(
			`Array.from(document.querySelectorAll("main tbody th a")).map(a => a.href)`, &found))
		for _, address := range found {
			paths = append(paths, strings.TrimPrefix(address, v.url))
		}
		paths = append(paths, list)
	}
	if len(paths) < 90 {
		t.Fatalf("only %d pages have hostile texts", len(paths))
	}
	for _, path := range paths {
		v.open(path)
		v.until("the stream has brought all of it", `!document.body.dataset.stream ||
			document.getElementById("link").textContent === "live"`)
		v.innocent(path)
	}
	var waits string
	v.open(fmt.Sprintf("instance?saga=caller&key=%s", "%3Cscript%3Ewindow.hurt%3D1%3C%2Fscript%3E"))
	if waits = v.text("#waits"); !strings.Contains(waits, "It is dead letter") {
		t.Errorf("an instance whose message died does not say so: %s", waits)
	}
}

// innocent fails if a page has anything that a text must not create.
func (v *visitor) innocent(path string) {
	v.t.Helper()
	if hurt := v.script(`window.hurt`); hurt != "undefined" {
		v.t.Errorf("%s has run script %s", path, hurt)
	}
	if base := v.script(`document.baseURI`); !strings.HasPrefix(base, v.url) {
		v.t.Errorf("%s leads to %s", path, base)
	}
	const foreign = `main :is(script, img, iframe, base, meta, link, style, [onerror], [onload], [onfocus], [autofocus],
		[onmouseover], [srcdoc], [href^="javascript:"], [action^="http"])`
	made := v.script("Array.from(document.querySelectorAll(`" + foreign + "`)).map(e => e.outerHTML)")
	if made != "" {
		v.t.Errorf("a text on %s has made %s", path, made)
	}
}
