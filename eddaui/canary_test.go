package eddaui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/pg"
)

// A canary whose first message dies again stops itself, and its page shows that and the reason.
func TestACanaryStopsItself(t *testing.T) {
	t.Parallel()
	pool, schema, _ := newShop(t)
	st := &stage{site: serve(t, pool, schema, eddaui.Options{Authorize: allow(everything)})}
	var err error
	if st.sql, err = pg.ParseSchema(schema); err != nil {
		t.Fatal(err)
	}
	group := ask[string](st,
		"SELECT error_group FROM :schema.dead_letter WHERE error LIKE '%mailbox is full%' LIMIT 1")
	path, agreed := st.agreement(st.post("/dead/retry",
		form("group", group, "way", "canary", "reason", "a new server")), "")
	a := st.post(path, agreed)
	address, _, _ := strings.Cut(strings.TrimLeft(a.header.Get("Location"), "./"), "?")
	if a.status != http.StatusSeeOther || !strings.HasPrefix(address, "jobs/") {
		t.Fatalf("it is %d and leads to %q: %s", a.status, address, mainOf(a.body))
	}
	page := st.open("/" + address + "?live=1")
	page.until("the pause", func(e event) bool {
		return e.id == "job" && strings.Contains(e.html, "paused") &&
			strings.Contains(e.html, "1 of 1 messages of stage 1 failed again") &&
			strings.Contains(e.html, "the mailbox is full")
	})
	whole := st.get("/" + address)
	for _, want := range []string{
		"dead.job", "a new server", "1, 5, 25, 125, 625, 3125 letters", "<dt>Letters retried</dt><dd>1</dd>",
		"<summary>Resume job",
	} {
		if !strings.Contains(whole, want) {
			t.Errorf("the page of the job has no %q: %s", want, mainOf(whole))
		}
	}
	const left = "SELECT count(*) FROM :schema.dead_letter WHERE error_group = $1"
	if n := ask[int](st, left, group); n != 4 { // the message that was sent has come back
		t.Errorf("%d letters are in the group, want 4", n)
	}
}
