package browser

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/edda-go/edda/eddaui/browser/axe"
)

func TestForms(t *testing.T) {
	s := openShop(t)
	t.Run("outlive an update", func(t *testing.T) { outliveAnUpdate(t, s) })
	t.Run("stay whole while somebody is in them", func(t *testing.T) { stayWhole(t, s) })
	t.Run("are sent without JavaScript", func(t *testing.T) { sentWithoutScript(t, s) })
	t.Run("are sent without TLS", func(t *testing.T) { sentWithoutTLS(t, s) })
	t.Run("say once what was done", func(t *testing.T) { toldOnce(t, s) })
	t.Run("have no barrier", func(t *testing.T) { noBarrier(t, s, axe.Read(t)) })
}

const isLive = `document.getElementById("link").textContent === "live"`

// Typed text stays, even if the focus has left it, and if the form would disappear.
func outliveAnUpdate(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("endpoints/stock")
	v.until("the stream is open", isLive)
	v.do("type a reason, and leave the form", chromedp.Click("#endpoint-pause-stock summary", chromedp.ByQuery),
		chromedp.SendKeys("#endpoint-pause-stock-reason", "counting shelves", chromedp.ByQuery),
		chromedp.Evaluate(`document.activeElement.blur()`, nil))
	s.edda("endpoint", "pause", "stock", "--reason", "from a shell")
	v.until("the pause is seen, with its end", `document.getElementById("says").textContent.includes("from a shell")
		&& document.getElementById("endpoint-resume-stock") !== null`)
	if typed := v.script(`document.getElementById("endpoint-pause-stock-reason").value`); typed != "counting shelves" {
		t.Errorf("what was typed is %q now", typed)
	}
	if open := v.script(`document.getElementById("endpoint-pause-stock").open`); open != "true" {
		t.Error("an update has closed the form")
	}
	s.edda("endpoint", "resume", "stock")
	v.until("the end is seen", `document.getElementById("endpoint-resume-stock") === null`)
	if typed := v.script(`document.getElementById("endpoint-pause-stock-reason").value`); typed != "counting shelves" {
		t.Errorf("after a second update what was typed is %q", typed)
	}
}

// A form that has the focus keeps its version, and not only the edited text. Otherwise the state of an old version
// would be sent with the number of a new one.
func stayWhole(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("sagas/order/2026-0013")
	v.until("the stream is open", isLive)
	const version = `document.querySelector("#saga-patch-order-2026-0013 [name=version]").value`
	before := v.script(version)
	v.do("go into the field", chromedp.Click("#saga-patch-order-2026-0013 summary", chromedp.ByQuery),
		chromedp.Focus("#saga-patch-order-2026-0013-patch", chromedp.ByQuery))
	s.edda("send", "order.note", "--body", "testdata/note.json")
	v.until("the note is seen", `document.getElementById("timeline").textContent.includes("order.note")`)
	v.until("the other form has the new version",
		`document.querySelector("#saga-end-order-2026-0013 [name=version]").value !== "`+before+`"`)
	if now := v.script(version); now != before {
		t.Errorf("the form has version %s now, and was made of %s", now, before)
	}
}

func sentWithoutScript(t *testing.T, s *shop) {
	l := desk
	l.noScript = true
	v := newVisitor(t, s, l)
	v.open("endpoints/labels")
	v.do("pause", chromedp.Click("#endpoint-pause-labels summary", chromedp.ByQuery),
		chromedp.SendKeys("#endpoint-pause-labels-reason", "no paper", chromedp.ByQuery),
		chromedp.Click("#endpoint-pause-labels button", chromedp.ByQuery),
		chromedp.WaitVisible("p.done", chromedp.ByQuery))
	if text := v.text("main"); !strings.Contains(text, "The endpoint was paused.") ||
		!strings.Contains(text, "paused by visitor: no paper") {
		t.Errorf("the page says %q", text)
	}
	v.open("dead/1")
	v.do("discard", chromedp.Click("#dead-discard-1 summary", chromedp.ByQuery),
		chromedp.SendKeys("#dead-discard-1-reason", "a test", chromedp.ByQuery),
		chromedp.Click("#dead-discard-1 button", chromedp.ByQuery), chromedp.WaitVisible("#agree", chromedp.ByQuery))
	v.shoot("agree-noscript")
	v.do("agree", chromedp.Click("#agree button", chromedp.ByQuery), chromedp.WaitVisible("p.done", chromedp.ByQuery))
	if text := v.text("p.done"); text != "The dead letter was discarded." {
		t.Errorf("the page says %q", text)
	}
}

// Without TLS, and from a different machine, a browser sends only the origin of the site that a request comes from.
func sentWithoutTLS(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.url = fromElsewhere(t, s.url)
	v.open("limits")
	v.do("set the limit", chromedp.Click("#limit-set-mails summary", chromedp.ByQuery),
		chromedp.Click("#limit-set-mails button", chromedp.ByQuery), chromedp.WaitVisible("p.done", chromedp.ByQuery))
}

// fromElsewhere returns an address of the pages with the name of a different machine. The pages of a demo are only
// for this machine, so a proxy forwards to them, like a proxy that ends TLS.
func fromElsewhere(t *testing.T, pages string) string {
	t.Helper()
	target, err := url.Parse(pages)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
		if origin := r.In.Header.Get("Origin"); origin == "http://"+r.In.Host {
			r.Out.Header.Set("Origin", target.Scheme+"://"+target.Host)
		}
	}})
	t.Cleanup(func() {
		proxy.CloseClientConnections() // a stream of updates does not end by itself
		proxy.Close()
	})
	return strings.Replace(proxy.URL, "127.0.0.1", "shop.example", 1) + target.Path
}

// A page that is loaded again, or cached, does not report the result again.
func toldOnce(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("endpoints/labels")
	v.do("resume", chromedp.Click("#endpoint-resume-labels summary", chromedp.ByQuery),
		chromedp.Click("#endpoint-resume-labels button", chromedp.ByQuery),
		chromedp.WaitVisible("p.done", chromedp.ByQuery))
	v.until("the address says nothing of it", `!location.href.includes("done")`)
	v.do("load it again", chromedp.Reload(), chromedp.WaitVisible("footer", chromedp.ByQuery))
	if told := v.script(`document.querySelector("p.done")`); told != "null" {
		t.Error("it is told again")
	}
}

func noBarrier(t *testing.T, s *shop, script string) {
	for _, l := range looks {
		v := newVisitor(t, s, l)
		for name, path := range map[string]string{
			"endpoint": "endpoints/payments", "instance": "sagas/order/2026-0012", "letter": "dead/2",
			"limits": "limits", "border": "border", "manifest": "manifests/night%2Fsettle", "dead": "dead",
		} {
			v.open(path)
			v.script(`document.getElementById("hold")?.click()`) // axe reads the page piece by piece: no update now
			v.do("open all forms", chromedp.Evaluate(
				`document.querySelectorAll("details.act").forEach(d => { d.open = true; })`, nil))
			v.shoot("forms-" + name + "-" + l.name)
			if v.script(`document.documentElement.scrollWidth > window.innerWidth`) == "true" {
				t.Errorf("%s is wider than the screen", name)
			}
			for _, barrier := range v.barriers(script) {
				t.Errorf("%s, %s has a barrier: %s", name, l.name, barrier)
			}
		}
	}
}
