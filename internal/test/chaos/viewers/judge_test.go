package viewers

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const good = `
		TRUNCATE edda.dead_letter;
		INSERT INTO chaos.told SELECT 'charge', n FROM generate_series(1, 9) n;
		INSERT INTO chaos.effect (key, n) SELECT 'charge', n FROM generate_series(1, 9) n;
		INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		SELECT 'payments', gen_random_uuid(), 'viewers.charge', '', convert_to('{"N":' || n || '}', 'UTF8'), 1, 0, '',
			''
		FROM generate_series(11, 14) n;
		INSERT INTO chaos.letter SELECT id, message_id, (convert_from(body, 'UTF8')::json ->> 'N')::bigint
		FROM edda.dead_letter;
		INSERT INTO chaos.letter SELECT 99, gen_random_uuid(), 3`
	judge := func(ctx context.Context, l *lab.Lab) error {
		r := &trial{Lab: l}
		if err := r.Check(ctx, r.Pool, "check_undo"); err != nil {
			return err
		}
		return r.judge(ctx, l)
	}
	labtest.Verdict{Scenario: Scenario, Good: good, Judge: judge}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "a letter came back that was handled", Rule: "undone though handled",
			SQL: `INSERT INTO chaos.effect (key, n) VALUES ('charge', 12);
				INSERT INTO chaos.told VALUES ('charge', 12)`},
		labtest.Sabotage{Name: "a letter is gone", Rule: "vanished",
			SQL: `DELETE FROM edda.dead_letter WHERE id = (SELECT max(id) FROM edda.dead_letter)`},
		labtest.Sabotage{Name: "a letter came back under another number", Rule: "vanished",
			SQL: `UPDATE edda.dead_letter SET id = DEFAULT WHERE id = (SELECT max(id) FROM edda.dead_letter)`})...)
}

// What a page says is compared in both directions that matter: too few and too many, old and new.
func TestDifferencesOfPagesAreFound(t *testing.T) {
	t.Parallel()
	truth := seen{waiting(later): "137", dead(paying): "3", order("000003"): "version 2, order 3, paid true"}
	if all := truth.differences(truth); len(all) != 0 {
		t.Errorf("the truth differs from itself in %q", all)
	}
	for thing, value := range map[string]string{waiting(later): "", dead(paying): "4",
		order("000003"): "version 1, order 3, paid true"} {
		page := maps.Clone(truth)
		page[thing] = value
		if all := page.differences(truth); len(all) != 1 || !strings.Contains(all[0], thing) {
			t.Errorf("want one difference in %q, have %q", thing, all)
		}
	}
}

// An open page is up to date if each of its fragments stands on the page as it is loaded now, whatever the clocks say.
func TestAnOpenPageIsComparedWithOneThatIsLoadedNow(t *testing.T) {
	t.Parallel()
	const page = `<main><div id="a">dead: 3 <time datetime="1">now</time></div><div id="b">x</div></main>`
	for html, want := range map[string]string{
		`dead: 3 <time datetime="2">a minute ago</time>`: "", `dead: 4 <time datetime="1">now</time>`: "a",
	} {
		o := &open{fragments: map[string]string{"a": html, "b": "x"}}
		if got := o.stale(page); got != want {
			t.Errorf("with %s the stale fragment is %q, want %q", html, got, want)
		}
	}
	if got := (&open{}).stale(page); got == "" {
		t.Error("a page that has never been seen is up to date")
	}
}
