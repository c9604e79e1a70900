package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/edda-go/edda/eddaui/browser/axe"
)

var looks = []look{
	{name: "light-1280", width: 1280, height: 900}, {name: "dark-1280", width: 1280, height: 900, dark: true},
	{name: "light-390", width: 390, height: 844}, {name: "dark-390", width: 390, height: 844, dark: true},
}

var desk = looks[0]

// pages are visited in every look.
func pages(s *shop) map[string]string {
	return map[string]string{
		"now": "", "sagas": "sagas", "instances": "sagas/order", "instance": "sagas/order/2026-0012",
		"lives": "sagas/order/2026-0003", "dead": "dead", "group": s.group, "letter": s.letter,
		"endpoint": "endpoints/payments", "retrying": "endpoints/erp", "conversation": s.tree,
		"message": strings.Replace(s.tree, "conversations", "messages", 1), "schedules": "manifests",
		"run": s.run, "limits": "limits", "border": "border", "processes": "processes",
		"database": "database", "audit": "audit", "map": "map",
		"compare": "sagas/order/2026-0012?from=1&to=3",
		"found":   "find?q=" + strings.TrimPrefix(s.tree, "conversations/"),
		"find":    "find?q=nothing+of+this+name", "missing": "dead/9999", "manifest": "manifests/night%2Fsettle",
	}
}

// pictures are taken of pages whose look may break by a change of the style sheet, of a drawing or of the script
// while the HTML stays the same: the lists, the timeline, the tree, the map, the lines and bars, folded forms, a
// notice. On the phone columns disappear and lines break; in the dark only the colours differ.
var pictures = map[string][]string{
	"light-1280": {"now", "sagas", "instance", "letter", "endpoint", "conversation", "schedules", "manifest", "limits",
		"database", "map", "missing"},
	"light-390": {"now", "instance", "endpoint", "conversation", "database", "map"},
	"dark-1280": {"now", "instance", "database", "map"},
}

func TestVisitors(t *testing.T) {
	s := openShop(t)
	script := axe.Read(t)
	v := newVisitor(t, s, desk)
	v.open("endpoints/erp")
	v.until("the processes have written what they counted", `document.body.textContent.includes("plain handlers")`)
	for _, l := range looks {
		t.Run("pages "+l.name, func(t *testing.T) { everyPage(t, s, l, script) })
	}
	s.thirdLife()
	for _, l := range ways {
		t.Run("checks "+l.name, func(t *testing.T) { checked(t, s, l, readings) })
	}
	t.Run("checks live", func(t *testing.T) { checked(t, s, desk, live) })
	t.Run("an update keeps the focus", func(t *testing.T) { keepsFocus(t, s) })
	t.Run("what is new waits", func(t *testing.T) { newsWaits(t, s, script) })
	t.Run("what is gone stays", func(t *testing.T) { goneStays(t, s) })
	t.Run("updates can be paused", func(t *testing.T) { paused(t, s) })
	t.Run("by keyboard", func(t *testing.T) { byKeyboard(t, s) })
	t.Run("colours are chosen", func(t *testing.T) { colours(t, s) })
	t.Run("without JavaScript", func(t *testing.T) { withoutScript(t, s) })
	t.Run("the program ends", func(t *testing.T) { ends(t, s) })
}

func checked(t *testing.T, s *shop, l look, checks []check) {
	v := newVisitor(t, s, l)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, v.with(t)) })
	}
}

func everyPage(t *testing.T, s *shop, l look, script string) {
	v := newVisitor(t, s, l)
	for name, path := range pages(s) {
		v.open(path)
		if v.script(`document.documentElement.scrollWidth > window.innerWidth`) == "true" {
			t.Errorf("%s is wider than the screen: %s", name, v.script(`Array.from(document.querySelectorAll("main *"))
				.filter(e => e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest(".scroll, pre"))
				.slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")`))
		}
		for _, barrier := range v.barriers(script) {
			t.Errorf("%s has a barrier: %s", name, barrier)
		}
		if slices.Contains(pictures[l.name], name) {
			v.picture(name, l.name)
		}
	}
}

// Changes appear by themselves, and the page keeps its focus and its open parts, and is not loaded again.
func keepsFocus(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	v.do("focus a link and mark the page", chromedp.Focus(`#e-stock a`, chromedp.ByQuery),
		chromedp.Evaluate(`window.loaded = "once"`, nil))
	s.edda("endpoint", "pause", "stock", "--reason", "counting shelves")
	v.until("the pause is seen", `document.getElementById("sentences").textContent.includes("counting shelves")`)
	v.until("the row says so", `document.getElementById("e-stock").textContent.includes("paused")`)
	if at := v.script(`document.activeElement.textContent`); at != "stock" {
		t.Errorf("the focus is on %q", at)
	}
	if loaded := v.script(`window.loaded`); loaded != "once" {
		t.Error("the page was loaded again")
	}
	v.shoot("live")
	s.edda("endpoint", "resume", "stock")
	v.until("the end is seen", `!document.getElementById("sentences").textContent.includes("counting shelves")`)

	v.open("sagas/order/2026-0012")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	v.do("open the whole state", chromedp.Click(`#timeline details summary`, chromedp.ByQuery))
	s.edda("endpoint", "resume", "payments")
	v.until("the order is paid", `document.getElementById("timeline").textContent.includes("payment.charged")`)
	if open := v.script(`document.querySelector("#timeline details").open`); open != "true" {
		t.Error("an update has closed what was open")
	}
	s.edda("endpoint", "pause", "payments", "--reason", "the bank is down until 14:00")
}

func paused(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	v.do("pause", chromedp.Click("#hold", chromedp.ByQuery))
	v.until("it says so", `document.getElementById("link").textContent === "paused"`)
	if pressed := v.script(`document.getElementById("hold").getAttribute("aria-pressed")`); pressed != "true" {
		t.Errorf("the button is pressed: %s", pressed)
	}
	v.do("go on", chromedp.Click("#hold", chromedp.ByQuery))
	v.until("it goes on", `document.getElementById("link").textContent === "live"`)
}

func byKeyboard(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("")
	v.do("go to the next row twice", chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	if at := v.script(`document.activeElement.textContent`); at != "labels" {
		t.Errorf("after j and j the focus is on %q", at)
	}
	v.do("ask for help", chromedp.KeyEvent("?"))
	v.until("the help is there", `document.getElementById("help").open`)
	v.shoot("help")
	v.do("close it", chromedp.KeyEvent("\x1b"))
	v.until("the help is gone", `!document.getElementById("help").open`)
	// like a keyboard: a key whose default the page prevents gives no character
	v.do("find", input.DispatchKeyEvent(input.KeyRawDown).WithKey("/"),
		input.DispatchKeyEvent(input.KeyUp).WithKey("/"))
	if at := v.script(`document.activeElement.id`); at != "find" {
		t.Errorf("after / the focus is on %q", at)
	}
	v.do("type a key", chromedp.KeyEvent("2026-0012"))
	v.shoot("find")
	v.do("press enter", chromedp.KeyEvent("\r"))
	v.until("the instance is there", `document.querySelector(".timeline") !== null`)
	if head := v.script(`document.querySelector("h1").textContent`); !strings.Contains(head, "2026-0012") {
		t.Errorf("finding a key led to %q", head)
	}
}

func colours(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("")
	light := v.script(`getComputedStyle(document.body).backgroundColor`)
	v.do("choose dark", chromedp.Click("#theme-dark", chromedp.ByQuery))
	if dark := v.script(`getComputedStyle(document.body).backgroundColor`); dark == light {
		t.Errorf("dark is %s as light", dark)
	}
	v.open("dead")
	if theme := v.script(`document.documentElement.dataset.theme`); theme != "dark" {
		t.Errorf("the next page is %q", theme)
	}
	v.do("choose contrast", chromedp.Click("#theme-contrast", chromedp.ByQuery))
	v.shoot("dead-contrast")
}

// Without JavaScript every page is complete, folded parts can be opened, and colours can be chosen.
func withoutScript(t *testing.T, s *shop) {
	l := desk
	l.noScript = true
	v := newVisitor(t, s, l)
	for name, path := range pages(s) {
		v.open(path)
		if text := v.text("main"); len(text) < 20 {
			t.Errorf("%s says %q", name, text)
		}
	}
	v.open("sagas/order/2026-0012")
	v.do("open a whole state", chromedp.Click(`#timeline details summary`, chromedp.ByQuery),
		chromedp.WaitVisible(`#timeline details pre`, chromedp.ByQuery))
	v.shoot("instance-noscript")
	v.do("find", chromedp.SendKeys("#find", "payments\r", chromedp.ByQuery),
		chromedp.WaitVisible("dl.numbers", chromedp.ByQuery))
}

// The program stops while a page is open: it does not wait for the page, and the page shows that.
func ends(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	s.stop()
	v.until("it says so", `document.getElementById("link").textContent.includes("connection was lost")`)
}

// barriers returns the barriers that axe finds on the open page.
func (v *visitor) barriers(script string) []string {
	v.t.Helper()
	found, err := axe.Barriers(v.ctx, script)
	if err != nil {
		v.t.Fatal(err)
	}
	return found
}
