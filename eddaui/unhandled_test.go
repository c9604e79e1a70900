package eddaui_test

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/operate"
)

// A forgotten handler is on the first page, and on that of its endpoint, before its messages are dead letters.
func TestPagesSayThatNobodyHandlesAKind(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err == nil {
		err = op.Queues().Install(t.Context(), "bricks", "brick.lay")
	}
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int, kind string) {
		pgtest.Exec(t, pool, `INSERT INTO `+schema+`.queue_1 (due, id, kind, header, body, first_failed, last_error)
			SELECT now() + interval '30 seconds', gen_random_uuid(), $2, '{}', '{}', now(), $3
			FROM generate_series(1, $1)`, n, kind, kind+": "+bus.ErrUnknownKind.Error())
	}
	s := serve(t, pool, schema, eddaui.Options{})
	for _, c := range []struct {
		n          int
		kind, want string
	}{
		{1, "brick.drop", "no program of it handles brick.drop, and 1 message waits. Without a handler"},
		{2, "brick.<b>", "no program of it handles brick.&lt;b&gt;, brick.drop, and 3 messages wait. Without a"},
	} {
		put(c.n, c.kind)
		for _, path := range []string{"/", "/endpoints/bricks"} {
			if body := s.get(path); !strings.Contains(body, c.want) || strings.Contains(body, "Nothing is wrong") ||
				strings.Contains(body, "Nothing needs you") {
				t.Errorf("%s does not say %q:\n%s", path, c.want, mainOf(body))
			}
		}
	}
}
