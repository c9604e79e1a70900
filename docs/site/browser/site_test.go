package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/edda-go/edda/eddaui/browser/axe"
)

var (
	desk  = look{name: "light-1440", width: 1440, height: 900, scheme: "light"}
	phone = look{name: "light-390", width: 390, height: 844, scheme: "light"}
	looks = []look{
		desk, {name: "dark-1440", width: 1440, height: 900, scheme: "dark"},
		{name: "contrast-1024", width: 1024, height: 768, scheme: "dark", contrast: true},
		phone,
		{name: "wide-2560", width: 2560, height: 1440, scheme: "light"},
	}
	// pictured are the pages that are opened in every look. All pages are opened on a desk, where axe sees them, and
	// on a phone.
	pictured = []string{"index.html", "guide/index.html", "tutorial/3-time.html", "guide/hot-sagas.html",
		"guide/partitions.html", "reference/cli.html", "internals/decisions/0030-a-map-is-laid-out-here.html"}
)

func TestReaders(t *testing.T) {
	l := openLibrary(t)
	script := axe.Read(t)
	for _, look := range looks {
		t.Run("pages "+look.name, func(t *testing.T) { everyPage(t, l, look, script) })
	}
	t.Run("search finds the page about timeouts", func(t *testing.T) { searches(t, l, l.url, script) })
	t.Run("search needs no server", func(t *testing.T) { searches(t, l, "file://"+l.dir+"/"+l.version+"/", "") })
	t.Run("search by keyboard", func(t *testing.T) { byKeyboard(t, l) })
	t.Run("code is copied", func(t *testing.T) { copies(t, l) })
	t.Run("colours are kept", func(t *testing.T) { colours(t, l) })
	t.Run("versions have a menu", func(t *testing.T) { versions(t, l) })
	t.Run("without JavaScript", func(t *testing.T) { withoutScript(t, l) })
	t.Run("on a phone", func(t *testing.T) { onPhone(t, l) })
}

// No page is wider than its screen, and axe finds no barrier.
func everyPage(t *testing.T, l library, look look, script string) {
	r := newReader(t, l.url, look)
	pages := pictured
	if look == desk || look == phone {
		pages = l.pages
	}
	for _, page := range pages {
		r.open(page)
		if r.script(`document.documentElement.scrollWidth > window.innerWidth`) == "true" {
			t.Errorf("%s is wider than the screen: %s", page, r.script(`Array.from(document.querySelectorAll("body *"))
				.filter(e => e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest(".scroll, pre"))
				.slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")`))
		}
		chosen := slices.Contains(pictured, page)
		if chosen || look == desk {
			r.noBarrier(page, script)
		}
		if chosen {
			r.shoot(strings.NewReplacer("/", "-", ".html", "").Replace(page) + "-" + look.name)
		}
	}
}

func (r *reader) noBarrier(where, script string) {
	r.t.Helper()
	found, err := axe.Barriers(r.ctx, script)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, barrier := range found {
		r.t.Errorf("%s has a barrier: %s", where, barrier)
	}
}

// press sends a key as a keyboard does. A key gives no character if the page prevents its default.
func press(key string) chromedp.Action {
	return chromedp.Tasks{input.DispatchKeyEvent(input.KeyRawDown).WithKey(key),
		input.DispatchKeyEvent(input.KeyUp).WithKey(key)}
}

// The search finds where timeouts are explained. It needs a server as little as the pages do.
func searches(t *testing.T, l library, url, script string) {
	r := newReader(t, url, desk)
	r.open("guide/web.html")
	r.do("press /", press("/"))
	if at := r.script(`document.activeElement.id`); at != "query" {
		t.Fatalf("after / the focus is on %q", at)
	}
	r.do("type", chromedp.KeyEvent("timeout"))
	r.until("something is found", `document.querySelectorAll(".found a").length > 3`)
	first := r.script(`[...document.querySelectorAll(".found a")].slice(0, 5).map(a => a.href).join(" ")`)
	if !strings.Contains(first, "tutorial/3-time.html") {
		t.Errorf("the first that is found is %s", first)
	}
	if script != "" {
		r.noBarrier("the search", script)
	}
	r.shoot("search")
	r.do("open the page of the tutorial", chromedp.Click(`.found a[href*="3-time"]`, chromedp.ByQuery),
		chromedp.WaitVisible(`//h1[.="3. Time"]`, chromedp.BySearch))
}

// Everything of the search can be done with keys: open, type, choose, follow, close.
func byKeyboard(t *testing.T, l library) {
	r := newReader(t, l.url, desk)
	r.open("index.html")
	r.do("press Tab", chromedp.KeyEvent(kb.Tab))
	if at := r.script(`document.activeElement.className`); at != "skip" {
		t.Errorf("the first stop is %q", at)
	}
	r.do("open the search", press("/"), chromedp.KeyEvent("dead letter"))
	r.until("something is found", `document.querySelectorAll(".found a").length > 1`)
	r.do("go down twice", chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	if at := r.script(`[...document.querySelectorAll(".found a")].indexOf(document.activeElement)`); at != "1" {
		t.Errorf("the focus is on result %s, want 1", at)
	}
	want := r.script(`document.activeElement.href`)
	r.do("follow it", chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(`body:not([data-path="index.html"])`, chromedp.ByQuery))
	if at := r.script(`location.href`); at != want {
		t.Errorf("Enter led to %s, want %s", at, want)
	}
	r.do("open and close", press("/"))
	r.until("the search is open", `document.querySelector("dialog").open`)
	r.do("close", chromedp.KeyEvent(kb.Escape))
	r.until("the search is closed", `!document.querySelector("dialog").open`)
	r.do("search for nothing", press("/"), chromedp.KeyEvent("qqqqxyz"))
	r.until("it says so", `document.querySelector(".count").textContent.includes("Nothing")`)
}

func copies(t *testing.T, l library) {
	r := newReader(t, l.url, desk)
	r.do("allow the clipboard", browser.GrantPermissions([]browser.PermissionType{
		browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}))
	r.open("tutorial/1-a-saga.html")
	r.do("copy", chromedp.Click(".code .copy", chromedp.ByQuery))
	r.until("it says so", `document.querySelector(".copy").textContent === "Copied"`)
	r.do("read it", chromedp.Evaluate(`navigator.clipboard.readText().then(t => window.copied = t); 0`, nil))
	r.until("it is read", `window.copied !== undefined`)
	if same := r.script(`window.copied === document.querySelector(".code code").textContent`); same != "true" {
		t.Errorf("the clipboard has %q", r.script(`window.copied`))
	}
}

func colours(t *testing.T, l library) {
	r := newReader(t, l.url, desk)
	r.open("index.html")
	const paper = `getComputedStyle(document.body).backgroundColor`
	light := r.script(paper)
	r.do("choose dark", chromedp.Click(".theme summary", chromedp.ByQuery),
		chromedp.Click("#theme-dark", chromedp.ByQuery))
	r.shoot("theme")
	if dark := r.script(paper); dark == light {
		t.Errorf("dark is %s as light", dark)
	}
	r.open("guide/web.html")
	if dark := r.script(paper); dark == light {
		t.Error("the next page is light again")
	}
	if chosen := r.script(`document.querySelector("#theme-dark").checked`); chosen != "true" {
		t.Error("the menu does not show what was chosen")
	}
}

func versions(t *testing.T, l library) {
	r := newReader(t, l.url, desk)
	r.open("guide/web.html")
	r.do("open the menu", chromedp.Click(".versions summary", chromedp.ByQuery))
	r.until("this version is in it", `document.querySelector(".versions [aria-current]") !== null`)
	to := r.script(`document.querySelector(".versions [aria-current]").pathname`)
	if to != "/"+l.version+"/guide/web.html" {
		t.Errorf("it leads to %s", to)
	}
	r.do("close it", chromedp.KeyEvent(kb.Escape))
	if open := r.script(`document.querySelector(".versions").open`); open == "true" {
		t.Error("Escape leaves the menu open")
	}
}

// Without JavaScript every page is whole, and nothing shows that would do nothing.
func withoutScript(t *testing.T, l library) {
	dark := desk
	dark.noScript = true
	r := newReader(t, l.url, dark)
	for _, page := range pictured {
		r.open(page)
		if text := r.text("main"); len(text) < 200 {
			t.Errorf("%s says %q", page, text)
		}
		var shown []string
		r.do("look for buttons", chromedp.Evaluate(`[...document.querySelectorAll("button")]
			.filter(b => b.checkVisibility()).map(b => b.textContent)`, &shown))
		if len(shown) > 0 {
			t.Errorf("%s shows the buttons %q", page, shown)
		}
	}
	const paper = `getComputedStyle(document.body).backgroundColor`
	light := r.script(paper)
	r.do("choose dark", chromedp.Click(".theme summary", chromedp.ByQuery),
		chromedp.Click("#theme-dark", chromedp.ByQuery))
	if r.script(paper) == light {
		t.Error("choosing dark does nothing")
	}
	r.do("see all versions", chromedp.Click(".versions summary", chromedp.ByQuery),
		chromedp.Click(".versions a", chromedp.ByQuery),
		chromedp.WaitVisible(`.listed a[href="`+l.version+`/index.html"]`, chromedp.ByQuery))
}

func (r *reader) text(selector string) (text string) {
	r.t.Helper()
	r.do("read "+selector, chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// On a phone the pages are behind a link, which works without JavaScript too.
func onPhone(t *testing.T, l library) {
	for _, noScript := range []bool{false, true} {
		small := phone
		small.noScript = noScript
		r := newReader(t, l.url, small)
		r.open("tutorial/3-time.html")
		r.do("open the pages", chromedp.Click(".menu-link", chromedp.ByQuery),
			chromedp.WaitVisible("#menu", chromedp.ByQuery))
		r.shoot("menu-390")
		r.do("close them", chromedp.Click("#menu .close", chromedp.ByQuery),
			chromedp.WaitNotVisible("#menu", chromedp.ByQuery))
		r.do("choose a page", chromedp.Click(".menu-link", chromedp.ByQuery),
			chromedp.Click(`#menu a[href$="guide/web.html"]`, chromedp.ByQuery),
			chromedp.WaitVisible(`//h1[contains(., "web handler")]`, chromedp.BySearch))
	}
}
