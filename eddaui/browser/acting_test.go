package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Repairs that an operator makes with the pages, one after the other in the same shop.
func TestActs(t *testing.T) {
	s := openShop(t)
	for _, c := range []check{
		{"one letter is edited and handled", editsOne},
		{"many letters are changed, after a look at three", patchesMany},
		{"a canary stops itself", canaryStops},
		{"what still waits is taken back", takesBack},
		{"a repair of a state that has moved is refused", refusesMoved},
		{"what was done is in the audit, with its reason", inTheAudit},
		{"a job outlives the server of the pages", outlivesItsServer},
		{"nobody acts in pages that are for reading", nobodyActs},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, newVisitor(t, s, desk)) })
	}
}

// fill opens a form, and types into its fields.
func (v *visitor) fill(form string, fields map[string]string) {
	v.t.Helper()
	v.shows("#" + form)
	v.do("open the form "+form, chromedp.Evaluate(fmt.Sprintf(`document.getElementById(%q).open = true`, form), nil))
	for name, value := range fields {
		v.do("fill "+name, chromedp.SetValue(fmt.Sprintf("#%s-%s", form, name), value, chromedp.ByQuery))
	}
}

// send sends a form, confirms if necessary, and waits for the result.
func (v *visitor) send(form string, asked bool) {
	v.t.Helper()
	v.press("#" + form + "-form button")
	if asked {
		v.shows("#agree")
		v.press("#agree button")
	}
	v.shows("p.done")
}

// press clicks a visible button.
func (v *visitor) press(button string) {
	v.t.Helper()
	v.shows(button)
	v.do("press "+button, chromedp.Evaluate(`document.querySelector("`+button+`").click()`, nil))
}

// shows waits until the page has an element.
func (v *visitor) shows(selector string) {
	v.t.Helper()
	v.until("there is "+selector, `document.querySelector("`+selector+`") !== null`)
}

// groupOf returns the group of letters whose error has this text.
func (s *shop) groupOf(text string) string {
	return s.find("dead", regexp.MustCompile(`dead/groups/([0-9a-f]{12})">[^<]*`+text))
}

var letterLink = regexp.MustCompile(`dead/(\d+)">`)

func editsOne(t *testing.T, s *shop, v *visitor) {
	number := s.find("dead/groups/"+s.groupOf("out of paper"), letterLink)
	v.open("dead/" + number)
	form := "dead-edit-" + number
	v.fill(form, map[string]string{"body": `{"N": 8}`, "reason": "there is paper in printer 2"})
	v.send(form, false)
	v.until("it is handled", `document.body.textContent.includes("labels handled it")`)
	if text := v.text("main"); !strings.Contains(text, "label.print") {
		t.Errorf("the page of the message says %q", text)
	}
}

func patchesMany(t *testing.T, s *shop, v *visitor) {
	group := s.groupOf("out of paper")
	v.open("dead/groups/" + group)
	form := "dead-edit-many-" + group + "--"
	v.fill(form, map[string]string{"patch": `{"N": 9}`, "way": "all at once", "reason": "so do the others"})
	v.press("#" + form + "-form button")
	v.shows("#agree")
	shown := v.text("main")
	if n := strings.Count(v.script(`document.querySelector(".examples").textContent`), `"N": 9`); n != 2 {
		t.Errorf("%d letters are shown as they will be, want 2: %s", n, shown)
	}
	v.press("#agree button")
	v.shows("#job")
	v.until("the job is done", `document.getElementById("job").textContent.includes("done")`)
	v.open("dead")
	if strings.Contains(v.text("main"), "out of paper") {
		t.Error("the group is there still")
	}
}

func canaryStops(_ *testing.T, s *shop, v *visitor) {
	group := s.groupOf("mailbox")
	v.open("dead/groups/" + group)
	form := "dead-retry-many-" + group + "--"
	v.fill(form, map[string]string{"way": "canary", "reason": "perhaps they have room now"})
	v.send(form, true)
	v.within(2*time.Minute, "it has stopped itself", `document.querySelector("#job .bad") !== null`) // a stage: 30 s
	v.contains("#job", "paused", "mailbox is full")
}

func takesBack(t *testing.T, s *shop, v *visitor) {
	s.edda("endpoint", "pause", "mails")
	defer s.edda("endpoint", "resume", "mails")
	group := s.groupOf("mailbox")
	before := len(letterLink.FindAllString(s.read("dead/groups/"+group), -1))
	v.open("dead/groups/" + group)
	form := "dead-retry-many-" + group + "--"
	v.fill(form, map[string]string{"way": "all at once", "reason": "all of them"})
	v.send(form, true)
	v.until("all wait", `document.getElementById("job").textContent.includes("done")`)
	number := v.script(`location.pathname.split("/").pop()`)
	undo := "dead-undo-" + number
	v.fill(undo, map[string]string{"reason": "not today"})
	v.send(undo, false)
	v.until("they are taken back", `!document.getElementById("`+undo+`")`)
	if after := len(letterLink.FindAllString(s.read("dead/groups/"+group), -1)); after != before {
		t.Errorf("%d letters are back, want %d", after, before)
	}
}

func refusesMoved(t *testing.T, s *shop, v *visitor) {
	v.open("sagas/order/2026-0013")
	form := "saga-patch-order-2026-0013"
	v.fill(form, map[string]string{"patch": `{"Checked": true}`, "reason": "it was checked by telephone"})
	s.edda("send", "order.note", "--body", "testdata/note.json")
	v.until("the note is seen", `document.getElementById("timeline").textContent.includes("order.note")`)
	v.press("#" + form + "-form button")
	v.shows(".bad[role=alert], #agree")
	if v.script(`document.querySelector("#agree") !== null`) == "true" {
		v.press("#agree button")
		v.shows(".bad[role=alert]")
	}
	v.contains("main", "nothing done", "Current state", "Checked")
	if strings.Contains(s.read("audit?verb=saga.repair"), "by telephone") {
		t.Error("a repair that was refused is in the audit")
	}
}

func inTheAudit(_ *testing.T, _ *shop, v *visitor) {
	v.open("sagas/order/2026-0013")
	form := "saga-patch-order-2026-0013"
	v.fill(form, map[string]string{"patch": `{"Checked": true}`, "reason": "it was checked by telephone"})
	v.press("#" + form + "-form button")
	v.shows("p.done, #agree")
	if v.script(`document.querySelector("#agree") !== null`) == "true" {
		v.press("#agree button")
		v.shows("p.done")
	}
	v.open("audit")
	v.contains("#rows", "visitor", "saga.repair", "order/2026-0013", "it was checked by telephone")
	v.contains("#rows", "dead.undo", "not today")
	v.contains("#rows", "visitor", "dead.edit", "there is paper in printer 2")
}

// pages serves the pages of the shop in a process of their own, by the command.
func (s *shop) pages(flags ...string) (url string, kill func()) {
	s.t.Helper()
	serving := exec.Command(s.command, append([]string{"ui", "--listen", "127.0.0.1:0"}, flags...)...)
	serving.Env = append(os.Environ(), s.env...)
	out, err := serving.StdoutPipe()
	if err == nil {
		err = serving.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ended := false
	kill = func() {
		if !ended {
			ended = true
			_ = serving.Process.Signal(syscall.SIGKILL)
			_ = serving.Wait()
		}
	}
	s.t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url = regexp.MustCompile(`http://\S+`).FindString(lines.Text()); url != "" {
			return url, kill
		}
	}
	s.t.Fatal("edda ui has not told its address")
	return "", nil
}

// enter opens the pages at an address with a token.
func (v *visitor) enter(url string) {
	v.t.Helper()
	v.do("enter", chromedp.Navigate(url), chromedp.WaitVisible("footer", chromedp.ByQuery))
	v.url, _, _ = strings.Cut(url, "?")
}

func outlivesItsServer(t *testing.T, s *shop, v *visitor) {
	s.edda("endpoint", "pause", "mails") // so that the retried message waits
	defer s.edda("endpoint", "resume", "mails")
	group := s.groupOf("mailbox")
	all := len(letterLink.FindAllString(s.read("dead/groups/"+group), -1))
	url, kill := s.pages()
	v.enter(url)
	v.open("dead/groups/" + group)
	form := "dead-retry-many-" + group + "--"
	v.fill(form, map[string]string{"way": "all at once", "rate": "1", "reason": "one after another"})
	v.send(form, true)
	v.until("it has begun", `Number(document.querySelector("#job dd").textContent) > 0`)
	path := v.script(`location.pathname`)
	kill()
	url, _ = s.pages()
	v.enter(url)
	v.open(strings.TrimPrefix(path, "/"))
	job := path[strings.LastIndex(path, "/")+1:]
	v.fill("dead-resume-"+job, map[string]string{"reason": "its server was killed"})
	v.send("dead-resume-"+job, false)
	v.until("it is done", `document.getElementById("job").textContent.includes("done")`)
	if ended := v.script(`document.querySelector("#job dd").textContent`); ended != fmt.Sprint(all) {
		t.Errorf("%s letters were retried, want each of %d once", ended, all)
	}
}

func nobodyActs(t *testing.T, s *shop, v *visitor) {
	url, _ := s.pages("--read-only")
	v.enter(url)
	for _, path := range []string{"endpoints/stock", "dead", "sagas/order/2026-0012", "limits"} {
		v.open(path)
		if n := v.script(`document.querySelectorAll("form[method=post], details.act").length`); n != "0" {
			t.Errorf("%s has %s forms", path, n)
		}
	}
	for _, path := range []string{"endpoints/stock/pause", "limits/mails", "anything"} {
		v.do("try", chromedp.Evaluate(fmt.Sprintf(
			`window.answer = ""; fetch(%q, {method: "POST"}).then(r => { window.answer = String(r.status); }); 0`,
			v.url+path), nil))
		v.until("there is an answer", `window.answer !== ""`)
		if status := v.script("window.answer"); status != "403" {
			t.Errorf("POST %s is %s", path, status)
		}
	}
}
