package eddaui_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/saga"
)

// One shop serves the tests of forms.
func TestForms(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.furnish()
	for _, of := range []struct {
		name string
		test func(*stage)
	}{
		{"are shown to those who may send them", shownByRight}, {"are as the golden files have them", goldenForms},
		{"name the field that is wrong", wrongFields}, {"are bounded", boundedForms},
		{"ask for the number of many", typedNumber}, {"are about what was looked at", lookedAt},
		{"show three letters before they are changed", previewed}, {"show no body without the right", hiddenPreviews},
		{"repair only the version that was seen", movedOn}, {"keep what is secret", keptSecrets},
		{"mask what a preview shows", maskedPreviews}, {"show a patch to those who may see bodies", hiddenPatch},
		{"escape what came from anywhere", hostileBodies}, {"run a job by the right that it needs", jobNeedsItsRight},
		{"go on with a job that was interrupted", interrupted},
		{"are in nobody else's stream", ownStreams}, {"say nothing that is not theirs", toldByNobody},
		{"are told of who has no name", nameless}, {"are refused where pages only show things", readOnly},
		{"write a note on a group", notedGroup}, {"show ten of many instances", tenOfMany},
		{"go on with many instances", goOnWithMany},
		{"take keys and times of many as they are", asLookedAt},
		{"give a file more time", longFile}, {"export to who may see states", exportedStates},
	} {
		t.Run(of.name, func(t *testing.T) {
			all := st.site
			defer func() { st.site = all }()
			st.site, st.may = all.with(t), everything
			of.test(st)
		})
	}
}

// buttons matches the addresses of the forms of a page, relative to the first page.
var buttons = regexp.MustCompile(`<form method="post" action="(?:\.\./|\./)*([^"]+)" id="`)

// crawled returns the addresses of all forms that links lead to, with the pages that have them.
func (st *stage) crawled() map[string]string {
	st.t.Helper()
	found := map[string]string{}
	st.crawl("/", func(path, body string) {
		for _, address := range formsOf(body) {
			found[address] = path
		}
	})
	return found
}

func formsOf(body string) (addresses []string) {
	for _, m := range buttons.FindAllStringSubmatch(body, -1) {
		addresses = append(addresses, html.UnescapeString(m[1]))
	}
	return addresses
}

// furnish adds things that the shop lacks, so that each action has a target.
func (st *stage) furnish() {
	st.t.Helper()
	st.exec("INSERT INTO :schema.manifest_group (name) VALUES ('reports'), ('bills')")
	st.exec("UPDATE :schema.manifest_group SET paused_at = now() WHERE name = 'bills'")
	st.exec("UPDATE :schema.manifest SET group_id = (SELECT min(id) FROM :schema.manifest_group)")
	st.exec(`INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
		VALUES ('singleton/rates', 'a', 1, now(), now(), now() + interval '1 hour')`)
	st.exec("UPDATE :schema.concurrency_limit SET declared = 2, operated = true")
	st.exec("UPDATE :schema.endpoint_setting SET concurrency = 3 WHERE endpoint = 'mails'")
	st.exec(`INSERT INTO :schema.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
		SELECT slot, 'shop.events', now(), gen_random_uuid(), now(), 'order.shipped', '{}', '{}'
		FROM :schema.ring WHERE name = 'outbox'`)
	st.run("dead")
	st.exec("UPDATE :schema.run SET group_id = (SELECT min(id) FROM :schema.manifest_group) WHERE state = 'queued'")
	st.exec("UPDATE :schema.dead_letter_job SET ended = 1 WHERE id = $1", st.job("paused"))
}

// Actors get only the forms that they may send, and each action has a form on a page.
func shownByRight(st *stage) {
	mux, pages := http.NewServeMux(), map[string]string{}
	for _, a := range act.All() {
		mux.Handle("POST "+a.Pattern, named(a.Name))
	}
	for address, path := range st.crawled() {
		if pages[actionAt(mux, address)] = path; actionAt(mux, address) == "" {
			st.t.Errorf("the form of %s leads to no action", address)
		}
	}
	for _, a := range act.All() {
		if pages[a.Name] == "" && a.Name != "saga.repair" { // the orders have a secret, so they have saga.patch
			st.t.Errorf("no page has the form of %s", a.Name)
		}
	}
	st.may = eddaui.View | eddaui.Bodies
	if seen := st.crawled(); len(seen) > 0 {
		st.t.Errorf("somebody who may do nothing sees the forms %v", seen)
	}
	for right, name := range rightNames {
		st.may = eddaui.View | eddaui.Bodies | right
		for _, a := range act.All() {
			if pages[a.Name] == "" {
				continue
			}
			seen := slices.ContainsFunc(formsOf(st.get(pages[a.Name])), func(address string) bool {
				return actionAt(mux, address) == a.Name
			})
			if seen != (rightsFor(st.t, a.Name)&right != 0) {
				st.t.Errorf("somebody with the right %s sees the form of %s: %v", name, a.Name, seen)
			}
		}
	}
}

// named is a handler that is found by its name.
type named string

func (named) ServeHTTP(http.ResponseWriter, *http.Request) {}

func actionAt(mux *http.ServeMux, address string) string {
	r, err := http.NewRequest(http.MethodPost, "http://edda.example/"+address, nil)
	if err != nil {
		return ""
	}
	handler, _ := mux.Handler(r)
	name, _ := handler.(named)
	return string(name)
}

// details matches the forms of a page, which are folded.
var details = regexp.MustCompile(`(?s)<details class="act".*?</details>`)

func goldenForms(st *stage) {
	for name, path := range map[string]string{
		"forms-endpoint": "/endpoints/payments", "forms-instance": "/sagas/order/2026-0012", "forms-border": "/border",
		"forms-manifest": "/manifests/night%2Fsettle", "forms-limits": "/limits",
	} {
		golden(st.t, "shop/"+name, strings.Join(details.FindAllString(noNumbers(st.get(path)), -1), "\n"))
	}
	_, group := st.letters(2, "golden of many")
	golden(st.t, "shop/forms-agree", strings.ReplaceAll(noNumbers(mainOf(st.post("/dead/discard",
		form("group", group, "reason", "the <load> test")).body)), group, "GROUP"))
	golden(st.t, "shop/forms-wrong", mainOf(st.post("/endpoints/payments/workers", form("workers", "0")).body))
}

// A fault of a field is reported with its name and its limit, the form has the submitted values again, and nothing is
// changed.
func wrongFields(st *stage) {
	number, group := st.letters(1, "wrong fields")
	letter, instance := fmt.Sprintf("/dead/%d/", number), []string{"saga", "order", "key", "2026-0012"}
	before := st.content()
	for _, c := range []struct {
		path string
		form url.Values
		says string
	}{
		{"/endpoints/mails/workers", form("workers", "0"),
			`Workers of each process: enter a number from 1 to 10000, not "0".`},
		{"/endpoints/mails/workers", form("workers", "x<y"), `enter a number from 1 to 10000, not "x<y"`},
		{"/endpoints/mails/workers", form(), "Workers of each process: this field is required."},
		{"/limits/mails/set", form("most", "10001"), "Limit: enter a number from 1 to 10000"},
		{"/endpoints/mails/pause", form("reason", strings.Repeat("x", 8193)),
			"Reason: it has 8193 bytes, the limit is 8192."},
		{"/endpoints/mails/pause", form("reason", "a\x00b"), "Reason: it contains bytes that are not text."},
		{"/endpoints/mails/pause", form("reason", "\xff"), "Reason: it contains bytes that are not text."},
		{"/endpoints/mails/history", form("level", "all"), "Level: choose one of off, steps, states, bodies"},
		{"/endpoints/mails/send", form("kind", "mail.send", "body", "{"), "Body: this is not valid JSON."},
		{"/endpoints/mails/send", form("kind", "mail.send", "body", "{}", "delay", "-1h"),
			"Due after: enter a duration"},
		{letter + "discard", form(), "Reason: this field is required."}, {letter + "edit", form(), "You have changed"},
		{letter + "edit", form("body", "no"), "Body: this is not valid JSON."},
		{letter + "edit", form("set", "a=b\nc"), "Headers to set: header 2 is not of the form NAME=VALUE."},
		{letter + "edit", form("set", "edda-from=x"), "Headers to set: only the bus sets"},
		{"/dead/edit", form("group", group, "way", "canary", "patch", "[1]"), "Merge patch: this is not a JSON object"},
		{"/dead/retry", form("group", group), "Way: this field is required."},
		{"/dead/retry", form("group", group, "way", "canary", "rate", "1e3"), "Letters a second: enter a number"},
		{"/instance/timeout/move", form(append(instance, "name", "payment", "at", "noon")...),
			"New due time: enter a time such as"},
		{"/instance/repair", form(append(instance, "version", "4", "state", "{", "reason", "x")...),
			"State: this is not valid JSON."},
		{"/manifests/night%2Fsettle/backfill", form("from", "1h", "until", "2h"), "From: this is not before the end"},
		{"/manifests/night%2Fsettle/trigger", form("body", "x"), "Message: this is not valid JSON."},
		{"/manifests/night%2Fsettle/trigger", form("priority", "32"), "Priority: enter a number from 1 to 31"},
		{"/manifests/night%2Fsettle/pause", form("reason", " "), "Reason: this field is required."},
		{"/groups/reports/set", form("max", "-1"), "Active runs at most: enter a number from 0"},
		{"/border/shop.events/replay", form("since", "yesterday"), "Relayed since: enter a time such as"},
		{"/kept/inbox/keep", form("keep", "week"), "Keep for: enter a duration such as"},
		{"/kept/inbox/keep", form("size", "1048576"), "Bytes at most: only the history has this setting."},
	} {
		a := st.post(c.path, c.form)
		if a.status != http.StatusBadRequest || !strings.Contains(html.UnescapeString(a.body), c.says) {
			st.t.Errorf("%s with %.60v is %d and says %.300s, want %q", c.path, c.form, a.status, mainOf(a.body),
				c.says)
		}
		for name, values := range c.form {
			if typed := html.EscapeString(values[0]); len(typed) > 1 && len(typed) < 100 && typed[0] < 0x7f &&
				!strings.Contains(typed, "\x00") && !strings.Contains(a.body, typed) {
				st.t.Errorf("%s: what was sent as %s is not in the form again", c.path, name)
			}
		}
	}
	if st.content() != before {
		st.t.Error("a form that is wrong has changed something")
	}
	for path, status := range map[string]int{
		"/endpoints/nobody/pause": http.StatusNotFound, "/runs/x/retry": http.StatusNotFound,
		"/dead/99999/retry": http.StatusNotFound, "/jobs/x/stop": http.StatusNotFound,
		"/leases/none/resign": http.StatusNotFound,
	} {
		if a := st.post(path, form("reason", "x")); a.status != status ||
			!strings.Contains(a.body, "Nothing was changed: ") {
			st.t.Errorf("%s is %d: %s", path, a.status, mainOf(a.body))
		}
	}
}

// The list and the page of a group show its note, and its form begins with the note. A text of only invisible
// characters is not a note.
func notedGroup(st *stage) {
	_, group := st.letters(1, "a noted group")
	address := "/dead/groups/" + group + "/note"
	for text, status := range map[string]int{"a\u202eb": http.StatusConflict, "<b>OPS-1</b>": http.StatusSeeOther,
		strings.Repeat("x", 2001): http.StatusBadRequest} {
		if a := st.post(address, form("note", text)); a.status != status {
			st.t.Errorf("%.20q is %d: %s", text, a.status, mainOf(a.body))
		}
	}
	for _, path := range []string{"/dead", "/dead/groups/" + group} {
		if page := st.get(path); !strings.Contains(page, `<div class="note">&lt;b&gt;OPS-1&lt;/b&gt; <span`) {
			st.t.Errorf("%s has no note: %s", path, mainOf(page))
		}
	}
	if page := st.get("/dead/groups/" + group); !strings.Contains(page, ">\n&lt;b&gt;OPS-1&lt;/b&gt;</textarea>") {
		st.t.Errorf("the form does not begin with the note: %s", mainOf(page))
	}
	if text := st.get("/dead.json"); !strings.Contains(text, `"note": {`) || !strings.Contains(text, `OPS-1`) {
		st.t.Errorf("the JSON has no note: %s", text)
	}
}

// A form may have 4 MiB, and must be valid.
func boundedForms(st *stage) {
	large := form("reason", strings.Repeat("x", 4<<20))
	a := st.post("/endpoints/mails/pause", large)
	if a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "larger than 4194304 bytes") {
		st.t.Errorf("a large form is %d: %s", a.status, mainOf(a.body))
	}
	for _, kind := range []string{"application/json", "multipart/form-data; boundary=x", "", "text/plain"} {
		a := st.send("/endpoints/mails/pause", strings.NewReader("reason=x"), "Content-Type", kind)
		if a.status != http.StatusUnsupportedMediaType {
			st.t.Errorf("as %q it is %d", kind, a.status)
		}
	}
	st.may = eddaui.View
	if a := st.post("/endpoints/mails/pause", large); a.status != http.StatusForbidden {
		st.t.Errorf("a large form of somebody who may not is %d", a.status)
	}
	if ask[bool](st, "SELECT count(*) > 0 FROM :schema.endpoint_setting WHERE endpoint = 'mails' AND reason <> ''") {
		st.t.Error("the endpoint is paused")
	}
}

// A number above 1,000 must be typed before anything happens.
func typedNumber(st *stage) {
	_, group := st.letters(1001, "very many")
	a := st.post("/dead/discard", form("group", group, "reason", "a load test"))
	if !strings.Contains(a.body, "1,001 dead letters of group "+group+" will be discarded.") ||
		!strings.Contains(a.body, "This cannot be undone") || !strings.Contains(a.body, "Type the number, 1,001,") {
		st.t.Errorf("it asks %s", mainOf(a.body))
	}
	before := st.content()
	for _, typed := range []string{"", "yes", "1,000", "1002", "all"} {
		path, form := st.agreement(a, typed)
		if again := st.post(path, form); again.status != http.StatusOK || st.content() != before {
			st.t.Fatalf("with %q it is %d", typed, again.status)
		}
	}
	path, form := st.agreement(a, "1,001")
	form.Set("count", "5") // a smaller number than there are
	form.Set("confirm", "5")
	if again := st.post(path, form); again.status != http.StatusOK || st.content() != before {
		st.t.Fatalf("with a number that is too small it is %d", again.status)
	}
	path, form = st.agreement(a, "1,001")
	if got := st.post(path, form); got.status != http.StatusSeeOther {
		st.t.Fatalf("with the number it is %d: %s", got.status, mainOf(got.body))
	}
	st.ended()
	if n := ask[int](st, "SELECT count(*) FROM :schema.dead_letter WHERE error_group = $1", group); n != 0 {
		st.t.Errorf("%d letters are left", n)
	}
}

// The confirmed action does not include a letter that dies after the preview.
func lookedAt(st *stage) {
	_, group := st.letters(2, "looked at")
	a := st.post("/dead/discard", form("group", group, "reason", "x"))
	later, _ := st.letters(1, "looked at")
	path, form := st.agreement(a, "")
	if got := st.post(path, form); got.status != http.StatusSeeOther {
		st.t.Fatalf("it is %d: %s", got.status, mainOf(got.body))
	}
	st.ended()
	if left := ask[int64](st, "SELECT min(id) FROM :schema.dead_letter WHERE error_group = $1", group); left != later {
		st.t.Errorf("letter %d is left, want %d", left, later)
	}
}

func previewed(st *stage) {
	number, group := st.letters(5, "to be patched")
	st.exec("UPDATE :schema.dead_letter SET body = 'no JSON' WHERE id = $1", number-4)
	a := st.post("/dead/edit", form("group", group, "way", "canary", "patch", `{"Template": "shipped", "Order": null}`))
	text := html.UnescapeString(a.body)
	for _, want := range []string{
		"5 dead letters of group " + group + " will be changed and retried.", "It would stay a dead letter: ",
		`"Template": "x"`, `"Template": "shipped"`,
		"cannot be undone", "edda dead edit --patch FILE --group " + group, "--canary", "--yes",
	} {
		if !strings.Contains(text, want) {
			st.t.Errorf("the preview has no %q: %s", want, mainOf(a.body))
		}
	}
	if n := strings.Count(text, "<li>"); n != 3 {
		st.t.Errorf("it shows %d letters, want 3", n)
	}
}

// An actor who may not see bodies sees no body in a preview either.
func hiddenPreviews(st *stage) {
	number, group := st.letters(1, "with a body")
	st.exec(`UPDATE :schema.dead_letter SET body = '{"Order":"secret order"}' WHERE id = $1`, number)
	instance := []string{"saga", "order", "key", "2026-0012", "reason", "x"}
	version := fmt.Sprint(ask[int64](st, "SELECT version FROM :schema.saga WHERE key = '2026-0012'"))
	for path, form := range map[string]url.Values{
		fmt.Sprintf("/dead/%d/discard", number): form("reason", "x"),
		"/dead/edit":                            form("group", group, "way", "canary", "patch", `{"a":1}`),
		"/instance/end":                         form(instance...),
		"/instance/repair":                      form(append(instance, "version", version, "state", "{}")...),
		"/instance/patch":                       form(append(instance, "version", "1", "patch", "{}")...),
	} {
		st.may = everything &^ eddaui.Bodies
		a := st.post(path, form)
		if a.status != http.StatusOK && a.status != http.StatusConflict || strings.Contains(a.body, "secret order") ||
			strings.Contains(a.body, "27182812") {
			st.t.Errorf("%s without the right is %d: %s", path, a.status, mainOf(a.body))
		}
		st.may = everything
		if a := st.post(path, form); !strings.Contains(a.body, "secret order") &&
			!strings.Contains(a.body, "27182812") {
			st.t.Errorf("%s with the right shows nothing: %s", path, mainOf(a.body))
		}
	}
	for _, path := range []string{fmt.Sprintf("/dead/%d", number), "/sagas/order/2026-0012"} {
		st.may = everything &^ eddaui.Bodies
		if page := st.get(path); strings.Contains(page, "secret order") || strings.Contains(page, "27182812") {
			st.t.Errorf("a form of %s has what may not be seen", path)
		}
	}
}

// A repair of an old version is refused, and the page shows the current state beside the written one.
func movedOn(st *stage) {
	version := ask[int64](st, "SELECT version FROM :schema.saga WHERE key = '2026-0012'")
	repair := form("saga", "order", "key", "2026-0012", "version", fmt.Sprint(version), "reason", "lost",
		"state", `{"Cents": 77}`)
	path, agreed := st.agreement(st.post("/instance/repair", repair), "")
	st.exec("UPDATE :schema.saga SET version = version + 1 WHERE key = '2026-0012'")
	before := st.content()
	for _, form := range []url.Values{repair, agreed} {
		a := st.post(path, form)
		text := html.UnescapeString(a.body)
		for _, want := range []string{
			fmt.Sprintf("now has version %d", version+1), "Current state", `"Cents": 27182812`, `"Cents": 77`,
			fmt.Sprintf(`name="version" value="%d"`, version+1),
		} {
			if !strings.Contains(text, want) {
				st.t.Errorf("it says nothing of %q: %s", want, mainOf(a.body))
			}
		}
		if a.status != http.StatusConflict || st.content() != before {
			st.t.Errorf("it is %d, or has changed something", a.status)
		}
	}
}

// A masked text is never the initial value of a field; otherwise it would replace the secret in the database.
func keptSecrets(st *stage) {
	page := st.get("/sagas/order/2026-0012")
	if !strings.Contains(page, `action="../../instance/patch"`) || strings.Contains(page, "instance/repair") {
		st.t.Error("a state with a secret can be edited as a whole")
	}
	number, _ := st.letters(1, "with a secret")
	ui := serve(st.t, st.pool, st.schema, eddaui.Options{Authorize: allow(everything),
		Redact: func(string, json.RawMessage) json.RawMessage { return json.RawMessage(`{"Order":"***"}`) },
		Sagas:  []*saga.Definition{world.Orders}})
	if text := html.UnescapeString(ui.get(fmt.Sprintf("/dead/%d", number))); strings.Count(text, "***") != 1 ||
		strings.Contains(text, `"Template"`) {
		st.t.Errorf("a field begins with what is redacted: %s", mainOf(text))
	}
	if text := html.UnescapeString(st.get(fmt.Sprintf("/dead/%d", number))); !strings.Contains(text,
		"<textarea id=\"dead-edit-"+fmt.Sprint(number)+"-body\" name=\"body\"") ||
		!strings.Contains(text, ">\n{\n  \"Order\"") {
		st.t.Errorf("the body is not in its field: %s", mainOf(text))
	}
	ui = serve(st.t, st.pool, st.schema, eddaui.Options{Authorize: allow(eddaui.View)})
	if text := ui.get(fmt.Sprintf("/dead/%d.json", number)); !strings.Contains(text, `"size": 28`) {
		st.t.Errorf("without the right to see it a body has no size: %s", text)
	}
}

// A preview, a refusal and an end show a state without its secrets, including secrets from a patch.
func maskedPreviews(st *stage) {
	version := fmt.Sprint(ask[int64](st, "SELECT version FROM :schema.saga WHERE key = '2026-0012'"))
	if !ask[bool](st, `SELECT state::text LIKE '%customer 12"%' FROM :schema.saga WHERE key = '2026-0012'`) {
		st.t.Fatal("the state has no secret")
	}
	of := []string{"saga", "order", "key", "2026-0012", "reason", "x"}
	for _, c := range []struct {
		path string
		form url.Values
		want string // this is shown
	}{
		{"/instance/patch", form(append(of, "version", version, "patch", `{"Customer":"Mallory"}`)...), "Cents"},
		{"/instance/patch", form(append(of, "version", "1", "patch", `{"Cents":1}`)...), "now has version"},
		{"/instance/repair", form(append(of, "version", version, "state", `{"Customer":"Mallory"}`)...), "Cents"},
		{"/instance/end", form(append(of, "version", version)...), "Its state"},
	} {
		for _, path := range []string{c.path, c.path + ".json"} {
			a := st.post(path, c.form)
			shown, _, _ := strings.Cut(html.UnescapeString(a.body), `<form method="post"`) // without the sent text
			if strings.Contains(shown, "customer 12") || strings.Contains(shown, "Mallory") {
				st.t.Errorf("%s shows a secret: %s", path, mainOf(a.body))
			}
			if path == c.path && (!strings.Contains(shown, c.want) || !strings.Contains(shown, "[secret]")) {
				st.t.Errorf("%s shows no state with %s: %s", path, c.want, mainOf(a.body))
			}
		}
	}
}

// The patch of a job contains parts of bodies, and is only shown to actors who may see bodies.
func hiddenPatch(st *stage) {
	number := st.job("paused")
	st.exec(`UPDATE :schema.dead_letter_job SET patch = '{"Template":"of Mallory"}' WHERE id = $1`, number)
	for _, path := range []string{fmt.Sprintf("/jobs/%d", number), fmt.Sprintf("/jobs/%d.json", number)} {
		st.may = everything &^ eddaui.Bodies
		if text := st.get(path); strings.Contains(text, "Mallory") || !strings.Contains(text, fmt.Sprint(number)) {
			st.t.Errorf("%s shows somebody without the right: %s", path, mainOf(text))
		}
	}
	st.may = eddaui.View | eddaui.Bodies
	if text := st.get(fmt.Sprintf("/jobs/%d.json", number)); !strings.Contains(text, `"Template": "of Mallory"`) {
		st.t.Errorf("the right to see bodies shows no patch: %s", text)
	}
}

// A text from a message is only text in a field, too, and people edit only visible characters.
func hostileBodies(st *stage) {
	number, _ := st.letters(1, "hostile")
	st.exec("UPDATE :schema.dead_letter SET body = convert_to($2, 'UTF8') WHERE id = $1", number,
		`{"a":"</textarea><script>alert(1)</script>","b":"x`+"\u202e"+`y"}`)
	for _, page := range []string{
		st.get(fmt.Sprintf("/dead/%d", number)),
		st.post(fmt.Sprintf("/dead/%d/discard", number), form("reason", "<script>alert(2)</script>")).body,
		st.post(fmt.Sprintf("/dead/%d/edit", number), form("set", "<script>alert(3)</script>")).body,
	} {
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "\u202e") {
			st.t.Errorf("the page has a text as it came: %s", mainOf(page))
		}
		if !strings.Contains(page, "&lt;script&gt;alert") {
			st.t.Errorf("the page has no text of that: %s", mainOf(page))
		}
	}
}

// An actor who may retry cannot continue a job that discards, or edits letters.
func jobNeedsItsRight(st *stage) {
	for right, is := range map[eddaui.Permission]string{
		eddaui.Discard: "action = 'discard', plan = NULL, state = 'open', reason = 'x'", eddaui.Edit: `patch = '{}'`,
		eddaui.Retry: "action = 'retry'",
	} {
		number := st.job("paused")
		st.exec("UPDATE :schema.dead_letter_job SET "+is+" WHERE id = $1", number)
		for other, name := range rightNames {
			if other == right {
				continue
			}
			st.may = eddaui.View | other
			if a := st.post(fmt.Sprintf("/jobs/%d/resume", number), form()); a.status != http.StatusForbidden {
				st.t.Errorf("a job that needs %s goes on by %s: %d", rightNames[right], name, a.status)
			}
		}
		st.may = eddaui.View | right
		if a := st.post(fmt.Sprintf("/jobs/%d/resume", number), form()); a.status != http.StatusSeeOther {
			st.t.Errorf("a job that needs %s does not go on: %d %s", rightNames[right], a.status, mainOf(a.body))
		}
		st.ended()
	}
}

// A program that ends leaves its jobs as rows, and a second program continues: each letter is retried once.
func interrupted(st *stage) {
	_, group := st.letters(40, "slowly")
	ui := serve(st.t, st.pool, st.schema, eddaui.Options{Authorize: allow(everything)})
	first := &stage{site: ui, sql: st.sql}
	path, agreed := first.agreement(first.post("/dead/retry",
		form("group", group, "way", "all at once", "rate", "10")), "")
	to := first.post(path, agreed).header.Get("Location")
	page := regexp.MustCompile(`jobs/\d+`).FindString(to)
	for ask[int64](st, "SELECT ended FROM :schema.dead_letter_job ORDER BY id DESC LIMIT 1") == 0 {
		if st.t.Context().Err() != nil {
			st.t.Fatal("the job does not begin")
		}
	}
	ui.ui.Close()
	left := ask[int](st, "SELECT count(*) FROM :schema.dead_letter WHERE error_group = $1", group)
	if left == 0 || left == 40 || !strings.Contains(st.get("/"+page), "Resume job") {
		st.t.Errorf("%d letters are left, or the job does not go on: %s", left, mainOf(st.get("/"+page)))
	}
	st.exec("UPDATE :schema.dead_letter_job SET rate = NULL WHERE state = 'open'")
	if a := st.post("/"+page+"/resume", form()); a.status != http.StatusSeeOther {
		st.t.Fatalf("it goes on with %d: %s", a.status, mainOf(a.body))
	}
	st.ended()
	number := ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'mails'")
	waits := ask[int](st, fmt.Sprintf(`SELECT count(DISTINCT id) FROM :schema.queue_%d WHERE id IN
		(SELECT message_id FROM :schema.dead_letter_sent)`, number))
	if waits < 40 {
		st.t.Errorf("%d messages wait, want 40", waits)
	}
	if a := st.post("/"+page+"/undo", form()); a.status != http.StatusSeeOther ||
		!strings.Contains(st.get("/"+strings.TrimLeft(a.header.Get("Location"), "./")),
			"Messages that are dead letters again: 40.") {
		st.t.Errorf("undone it is %d: %s", a.status, a.header.Get("Location"))
	}
	if n := ask[int](st, "SELECT count(*) FROM :schema.dead_letter WHERE error_group = $1", group); n != 40 {
		st.t.Errorf("%d letters are back, want 40", n)
	}
}

// Two people with different rights open one page, and each gets the buttons that they may press.
func ownStreams(st *stage) {
	all := st.open("/endpoints/stock?live=1")
	all.until("the forms", fragment("acts", "endpoints/stock/pause"))
	for may, want := range map[eddaui.Permission]bool{
		eddaui.View | eddaui.Bodies: false, eddaui.View: false, eddaui.View | eddaui.Bodies | eddaui.Pause: true,
	} {
		st.may = may
		stream := st.open("/endpoints/stock?live=1")
		events := stream.until("the forms", func(e event) bool { return e.id == "acts" })
		if html := events[len(events)-1].html; strings.Contains(html, "/pause") != want ||
			strings.Contains(html, "/workers") {
			st.t.Errorf("somebody with the rights %b gets %s", may, html)
		}
	}
}

// An address cannot make a page report a result in a text of its own.
func toldByNobody(st *stage) {
	for _, query := range []string{
		"?done=you+won", "?done=dead.undo", "?done=dead.undo&counts=x,y", "?done=dead.undo&counts=1,2,3",
		"?done=endpoint.pause&counts=1", "?done=%3Cscript%3E",
	} {
		if page := st.get("/limits" + query); strings.Contains(page, `class="done"`) ||
			strings.Contains(page, "done=") {
			st.t.Errorf("%s is told", query)
		}
	}
	page := st.get("/limits?done=limit.set")
	if !strings.Contains(page, "The limit was set.") || strings.Contains(page, "limits?done") {
		st.t.Errorf("it is not told, or goes on to be told: %s", mainOf(page))
	}
}

// An actor without a name is in the audit by the address.
func nameless(st *stage) {
	ui := serve(st.t, st.pool, st.schema, eddaui.Options{Authorize: func(*http.Request) (eddaui.Actor, error) {
		return eddaui.Actor{Permissions: everything}, nil
	}})
	a := (&stage{site: ui, sql: st.sql}).post("/manifests/night%2Fsettle/trigger", form("reason", "no name"))
	if a.status != http.StatusSeeOther {
		st.t.Fatalf("it is %d: %s", a.status, mainOf(a.body))
	}
	by := ask[string](st, "SELECT actor || ' from ' || origin FROM :schema.audit WHERE reason = 'no name'")
	if !strings.HasPrefix(by, "127.0.0.1:") || !strings.Contains(by, " from 127.0.0.1:") {
		st.t.Errorf("the audit has %s", by)
	}
}

// Read-only pages have no buttons, and refuse every POST of every actor.
func readOnly(st *stage) {
	ui := serve(st.t, st.pool, st.schema, eddaui.Options{Authorize: allow(everything), ReadOnly: true})
	before := st.content()
	only := &stage{site: ui, sql: st.sql}
	if seen := only.crawled(); len(seen) > 0 {
		st.t.Errorf("there are the forms %v", seen)
	}
	for name, prepare := range st.deedsOfEndpoints() {
		if name != "endpoint.pause" && name != "endpoint.limit" {
			continue
		}
		d := prepare()
		if a := only.post(d.path, d.form); a.status != http.StatusForbidden ||
			!strings.Contains(a.body, "read-only") {
			st.t.Errorf("%s is %d: %s", name, a.status, mainOf(a.body))
		}
	}
	if st.content() != before {
		st.t.Error("something was changed")
	}
}
