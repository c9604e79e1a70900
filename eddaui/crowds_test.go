package eddaui_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// An action on many instances affects the instances of the preview: it counts them, and shows ten of them.
func tenOfMany(st *stage) {
	var keys []string
	for n := range 12 {
		keys = append(keys, fmt.Sprintf("ten-%02d", n))
	}
	st.crowd(keys...)
	page := st.get("/sagas/crowd?prefix=ten-")
	for _, form := range []string{"send", "end", "export"} {
		if !strings.Contains(page, `action="../sagas/crowd/`+form+`"`) {
			st.t.Errorf("the page has no form to %s", form)
		}
	}
	a := st.post("/sagas/crowd/end", form("prefix", "ten-", "reason", "x"))
	text := html.UnescapeString(a.body)
	for _, want := range []string{"12 instances of crowd whose keys begin with ten- will be ended.",
		"ten-09, version 1, started", "This cannot be undone.",
		"edda saga end crowd --prefix ten- --started-before 20"} {
		if !strings.Contains(text, want) {
			st.t.Errorf("it says nothing of %q: %s", want, mainOf(a.body))
		}
	}
	if strings.Contains(text, "ten-10, version") {
		st.t.Error("it shows more than ten")
	}
	st.crowd("ten-later")
	path, agreed := st.agreement(a, "")
	if got := st.post(path, agreed); got.status != http.StatusSeeOther {
		st.t.Fatalf("it is %d: %s", got.status, mainOf(got.body))
	}
	if left := ask[string](st, "SELECT string_agg(key, ' ') FROM :schema.saga WHERE key LIKE 'ten-%'"); left !=
		"ten-later" {
		st.t.Errorf("left are %s", left)
	}
	if got := st.post("/sagas/crowd/end", form("prefix", "none", "reason", "x")); got.status != http.StatusNotFound {
		st.t.Errorf("of nothing it is %d", got.status)
	}
}

// If an action takes longer than a request may, its page shows where it has stopped, and its form continues there:
// each instance gets the message once.
func goOnWithMany(st *stage) {
	st.ui.SetLong(pgdev.Patience(200 * time.Millisecond)) // the first has to end within this time
	defer st.ui.SetLong(20 * time.Second)
	st.crowd("on-1", "on-2", "on-3")
	lock, err := st.pool.Begin(st.t.Context())
	if err != nil {
		st.t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(st.t.Context()) }()
	if _, err := lock.Exec(st.t.Context(), st.sql.Render(
		"SELECT FROM :schema.saga WHERE key = 'on-2' FOR UPDATE")); err != nil {
		st.t.Fatal(err)
	}
	path, agreed := st.agreement(st.post("/sagas/crowd/end", form("prefix", "on-", "reason", "x")), "")
	a := st.post(path, agreed)
	text := html.UnescapeString(a.body)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(text, `stopped after the key "on-1"`) ||
		!strings.Contains(text, "not taken back: 1 instance.") || !strings.Contains(text, `name="after" value="on-1"`) {
		st.t.Errorf("it is %d: %s", a.status, mainOf(a.body))
	}
	free(st, lock)
	st.ui.SetLong(20 * time.Second)
	agreed.Set("after", "on-1")
	agreed.Set("count", "2")
	if got := st.post(path, agreed); got.status != http.StatusSeeOther || !strings.Contains(got.header.Get("Location"),
		"counts=2%2C0%2C0") {
		st.t.Errorf("it goes on with %d, %v: %s", got.status, got.header, mainOf(got.body))
	}
	st.crowd("on-1", "on-2")
	path, agreed = st.agreement(st.post("/sagas/crowd/send", form("prefix", "on-", "to", "labels", "kind", "label.on",
		"body", "{}", "delay", "1h")), "")
	for range 2 {
		if got := st.post(path, agreed); got.status != http.StatusSeeOther {
			st.t.Errorf("it is %d: %s", got.status, mainOf(got.body))
		}
	}
	if n := ask[int](st, fmt.Sprintf("SELECT count(*) FROM :schema.queue_%d WHERE kind = 'label.on'", ask[int](st,
		"SELECT id FROM :schema.queue WHERE endpoint = 'labels'"))); n != 2 {
		st.t.Errorf("a form that was sent twice has sent %d messages to 2 instances", n)
	}
}

// A key may begin with a space, and a time that cannot be read is refused.
func asLookedAt(st *stage) {
	st.crowd("  spaced-1", " spaced-2")
	a := st.post("/sagas/crowd/end", form("prefix", " ", "after", "  spaced-1", "reason", "x"))
	text := html.UnescapeString(a.body)
	if a.status != http.StatusOK || !strings.Contains(text, " spaced-2, version 1") ||
		strings.Contains(text, "  spaced-1, version") {
		st.t.Errorf("behind a key with spaces it is %d: %s", a.status, mainOf(a.body))
	}
	st.exec("DELETE FROM :schema.saga WHERE key LIKE ' %'")
	st.crowd("timed")
	for _, do := range []string{"end", "export", "send"} {
		a := st.post("/sagas/crowd/"+do, form("prefix", "timed", "until", "noon", "count", "1", "confirm", "1",
			"reason", "x", "kind", "label.on", "to", "labels", "body", "{}"))
		if text := html.UnescapeString(a.body); a.status != http.StatusBadRequest || !strings.Contains(text,
			`Until: enter a time such as 2026-12-01T10:00:00Z, not "noon".`) {
			st.t.Errorf("%s until noon is %d: %s", do, a.status, mainOf(a.body))
		}
	}
}

// An export of many instances may take longer than other actions.
func longFile(st *stage) {
	st.ui.SetLimit(time.Nanosecond)
	defer st.ui.SetLimit(30 * time.Second)
	st.crowd("file-1", "file-2")
	if a := st.post("/endpoints/labels/pause", form("reason", "x")); a.status != http.StatusServiceUnavailable ||
		!strings.Contains(a.body, "The action took longer than 1ns") {
		st.t.Errorf("an action that takes too long is %d: %s", a.status, mainOf(a.body))
	}
	path, agreed := st.agreement(st.post("/sagas/crowd/export", form("prefix", "file-")), "")
	if got := st.post(path, agreed); got.status != http.StatusOK || strings.Count(got.body, "\n") != 2 {
		st.t.Errorf("a file is %d: %s", got.status, got.body)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			st.t.Errorf("a file that a browser does not take ends with %v", v)
		}
	}()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(agreed.Encode())).WithContext(st.t.Context())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	st.ui.ServeHTTP(deafBrowser{httptest.NewRecorder()}, r)
}

// deafBrowser reads nothing of an answer.
type deafBrowser struct{ *httptest.ResponseRecorder }

func (deafBrowser) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func free(st *stage, lock pgx.Tx) {
	st.t.Helper()
	if err := lock.Rollback(st.t.Context()); err != nil {
		st.t.Fatal(err)
	}
}

// An export needs the right to see states, and has no secrets.
func exportedStates(st *stage) {
	st.may = everything &^ eddaui.Bodies
	if page := st.get("/sagas/order"); strings.Contains(page, "sagas/order/export") {
		st.t.Error("somebody who may not see states has the form")
	}
	for _, sent := range []url.Values{form(), form("count", "99", "confirm", "99")} {
		a := st.post("/sagas/order/export", sent)
		if a.status != http.StatusForbidden || !strings.Contains(a.body, "need the right Bodies") {
			st.t.Errorf("without the right it is %d: %s", a.status, mainOf(a.body))
		}
	}
	st.may = everything
	path, agreed := st.agreement(st.post("/sagas/order/export", form()), "")
	got := st.post(path, agreed)
	st.filed(got, `"Customer":"[secret]"`)
	if lines := strings.Count(got.body, "\n"); agreed.Get("count") != fmt.Sprint(lines) || lines < 2 {
		st.t.Errorf("%d lines of %s instances", lines, agreed.Get("count"))
	}
}
