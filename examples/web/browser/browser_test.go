package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var desk, phone = look{width: 1000, height: 900}, look{width: 360, height: 740, dark: true}

func TestVisitors(t *testing.T) {
	url, stop := openShop(t)
	t.Run("the page follows the order", func(t *testing.T) { follows(t, url, desk, "desk") })
	t.Run("on a dark phone", func(t *testing.T) { follows(t, url, phone, "phone") })
	t.Run("without JavaScript", func(t *testing.T) { withoutScript(t, url) })
	t.Run("what cannot be ordered", func(t *testing.T) { faulty(t, url) })
	t.Run("what the bank refuses", func(t *testing.T) { refused(t, url) })
	t.Run("the shop closes", func(t *testing.T) { closes(t, url, stop) })
}

// The order goes through its states on one page that is loaded once.
func follows(t *testing.T, url string, l look, name string) {
	v := newVisitor(t, url, l)
	v.do("open", chromedp.Navigate(url+"/"), chromedp.WaitVisible("form", chromedp.ByQuery))
	v.shoot(name + "-form")
	v.order("2", "<b>By the back door</b>, please")
	v.until("#headline", "Waiting for the bank")
	v.do("mark the page", chromedp.Evaluate(`window.loaded = "once"`, nil))
	v.shoot(name + "-paying")
	if role, live := v.attribute("#headline", "role"), v.attribute("#headline", "aria-live"); role != "status" ||
		live != "polite" {
		t.Errorf("a screen reader would not hear: role=%q aria-live=%q", role, live)
	}
	if now := v.text(`.steps [aria-current="step"]`); !strings.HasPrefix(now, "Paid") {
		t.Errorf("the step under way is %q", now)
	}
	v.until("#headline", "Paid, and being packed")
	v.shoot(name + "-packing")
	v.do("wait for the end", chromedp.WaitVisible("#headline.good", chromedp.ByQuery),
		chromedp.WaitNotVisible("#link", chromedp.ByQuery))
	v.shoot(name + "-shipped")
	var loaded, title string
	var done int
	v.do("look at the end", chromedp.Evaluate(`window.loaded || "again"`, &loaded), chromedp.Title(&title),
		chromedp.Evaluate(`document.querySelectorAll(".steps .done").length`, &done))
	if loaded != "once" || done != 4 || !strings.HasPrefix(title, "Shipped") || v.text("#headline") != "Shipped" {
		t.Errorf("loaded %s, %d steps done, title %q", loaded, done, title)
	}
	if note := v.text(".note"); note != "<b>By the back door</b>, please" {
		t.Errorf("the note is shown as %q", note)
	}
	var wide bool
	v.do("measure", chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide))
	if wide {
		t.Error("the page is wider than the screen")
	}
}

// Without JavaScript the page shows the current state, and how to see more.
func withoutScript(t *testing.T, url string) {
	l := desk
	l.noScript = true
	v := newVisitor(t, url, l)
	v.order("1", "no script")
	v.shoot("noscript-begun")
	if text := v.text("noscript"); !strings.Contains(text, "Load it again") {
		t.Errorf("the page says %q", text)
	}
	for v.text("#headline") != "Shipped" && v.ctx.Err() == nil {
		v.do("load again", chromedp.Reload(), chromedp.WaitVisible("#headline", chromedp.ByQuery))
	}
	v.until("#headline", "Shipped")
	v.shoot("noscript-shipped")
}

func faulty(t *testing.T, url string) {
	v := newVisitor(t, url, desk)
	v.do("order too many", chromedp.Navigate(url+"/"),
		chromedp.SetAttributeValue("form", "novalidate", "", chromedp.ByQuery),
		chromedp.SetAttributeValue("#quantity", "value", "70", chromedp.ByQuery),
		chromedp.Click("form button", chromedp.ByQuery),
		chromedp.WaitVisible(".faults", chromedp.ByQuery))
	if fault := v.text("#quantity-fault"); !strings.Contains(fault, "from 1 to 20") {
		t.Errorf("the fault is told as %q", fault)
	}
	v.shoot("faulty")
}

func refused(t *testing.T, url string) {
	v := newVisitor(t, url, desk)
	v.do("order what is dear", chromedp.Navigate(url+"/"),
		chromedp.SetAttributeValue("#quantity", "value", "6", chromedp.ByQuery),
		chromedp.SetValue("#item", "A bronze kettle", chromedp.ByQuery),
		chromedp.Click("form button.second", chromedp.ByQuery),
		chromedp.WaitVisible("#headline.bad", chromedp.ByQuery))
	v.until("#headline", "Cancelled: the bank refused the payment")
	v.shoot("refused")
}

// The shop stops while a page is open: it does not wait for the page, and the page shows that the connection is lost.
func closes(t *testing.T, url string, stop func()) {
	v := newVisitor(t, url, desk)
	v.order("1", "")
	v.do("wait for the stream", chromedp.WaitVisible("#link", chromedp.ByQuery))
	stop()
	v.until("#link", "The connection was lost; trying again…")
	v.shoot("closed")
}
