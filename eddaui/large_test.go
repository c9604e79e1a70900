package eddaui_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgtest"
)

// A page shows the beginning of a large body, up to a whole character, and how much is left out, in JSON too.
func TestLargeBodiesAreCut(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	s := serve(t, pool, schema.Name(), eddaui.Options{Authorize: allow(everything)})
	pgtest.Exec(t, pool, schema.Render(`INSERT INTO :schema.dead_letter
		(endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		VALUES ('mails', gen_random_uuid(), 'mail.send', '{}', convert_to('x' || repeat('é', 1000000), 'UTF8'), 1, 0,
			'attempts', 'no')`))
	if page := s.get("/dead/1"); len(page) > 100<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	var shown struct {
		Size int
		Body string
		Left int `json:"body_left_out"`
	}
	if err := json.Unmarshal([]byte(s.get("/dead/1.json")), &shown); err != nil {
		t.Fatal(err)
	}
	if n := len(shown.Body); shown.Size != 2_000_001 || n < 60<<10 || n > 64<<10 || n+shown.Left != shown.Size ||
		!utf8.ValidString(shown.Body) {
		t.Errorf("of %d bytes %d are shown and %d left out", shown.Size, n, shown.Left)
	}
}
