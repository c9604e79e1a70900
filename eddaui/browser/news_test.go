package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// New rows of a list wait behind a link, and deleted rows stay: no row moves while it is read.
func newsWaits(t *testing.T, s *shop, script string) {
	v := newVisitor(t, s, desk)
	v.open("audit")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	first := v.script(`document.querySelector("#entries tbody tr").id`)
	rows := v.script(`document.querySelectorAll("#entries tbody tr").length`)
	top := v.script(`document.querySelector("#entries tbody tr").getBoundingClientRect().top`)
	v.do("focus a link", chromedp.Focus(`#entries tbody a`, chromedp.ByQuery))
	s.edda("limit", "set", "mails", "5", "--reason", "more is new")
	v.until("one is new", `document.querySelector("#entries .news")?.textContent === "1 new"`)
	s.edda("limit", "set", "mails", "6")
	v.until("two are new", `document.querySelector("#entries .news")?.textContent === "2 new"`)
	if now := v.script(`document.querySelector("#entries tbody tr").id`); now != first {
		t.Errorf("the first row is %s, and was %s", now, first)
	}
	if now := v.script(`document.querySelector("#entries tbody tr").getBoundingClientRect().top`); now != top {
		t.Errorf("the first row is at %s, and was at %s", now, top)
	}
	if at := v.script(`document.activeElement.closest("tbody") !== null`); at != "true" {
		t.Error("the focus is lost")
	}
	v.shoot("news")
	for _, barrier := range v.barriers(script) {
		t.Errorf("a list with news has a barrier: %s", barrier)
	}
	v.do("show them", chromedp.Click(`#entries .news`, chromedp.ByQuery))
	v.until("they are there", `document.querySelectorAll("#entries tbody tr").length === `+rows+` + 2`)
	if text := v.text("#entries tbody tr"); !strings.Contains(text, "limit.set") {
		t.Errorf("the first row says %q", text)
	}
	if left := v.script(`document.querySelector("#entries .news")`); left != "null" {
		t.Error("the link is still there")
	}
	if at := v.script(`document.activeElement.className`); at != "scroll" {
		t.Errorf("the focus is on %q", at)
	}
}

// A deleted row stays until the reader updates the list, and is marked as deleted.
func goneStays(t *testing.T, s *shop) {
	v := newVisitor(t, s, desk)
	v.open("dead")
	v.do("open a group", chromedp.Click(`#groups tbody a`, chromedp.ByQuery),
		chromedp.WaitVisible("#letters", chromedp.ByQuery))
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	letter := v.script(`document.querySelector("#letters tbody a").textContent`)
	rows := v.script(`document.querySelectorAll("#letters tbody tr").length`)
	s.edda("dead", "discard", letter, "--reason", "a test")
	v.until("the row says so", `document.querySelector("#letters tr.gone")?.textContent.includes("gone")`)
	if now := v.script(`document.querySelectorAll("#letters tbody tr").length`); now != rows {
		t.Errorf("%s rows are there, and %s were", now, rows)
	}
	v.shoot("gone")
	v.do("take it away", chromedp.Click(`#letters .news`, chromedp.ByQuery))
	v.until("it is away", `!document.querySelector("#letters tr.gone") &&
		document.querySelectorAll("#letters tbody tr").length === `+rows+` - 1`)
}
