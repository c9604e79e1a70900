package eddaui_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/pg"
)

// An instance whose timeout should have come stands first, then those to which nothing has come for longest. Those that
// are over, and only remembered, wait for nothing.
func TestQuietInstancesAreNamed(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	for n, i := range []struct{ key, changed, timeout string }{
		{"fresh", "1 min", ""}, {"old", "3 days", ""}, {"overdue", "2 h", "-1 h"}, {"waits", "2 days", "1 h"},
		{"on-its-way", "1 h", "-2 s"}, {"over", "9 days", "remembered"},
	} {
		timeouts := "NULL::json"
		switch i.timeout {
		case "":
		case "remembered":
			timeouts = `json_build_array(json_build_object('kind', 'edda.forget', 'due', now() + interval '1 h',
				'id', gen_random_uuid()))`
		default:
			timeouts = fmt.Sprintf(`json_build_array(json_build_object('kind', 'late', 'due', now() + interval '%s',
				'id', gen_random_uuid()))`, i.timeout)
		}
		if _, err := pool.Exec(t.Context(), parsed.Render(`INSERT INTO :schema.saga
			(iid, saga, key, version, state_version, state, timeouts, started, changed)
			VALUES (lpad(to_hex($1::int), 32, '0')::uuid, 'order', $2, 1, 1, '{}', `+timeouts+`,
				now() - interval '9 days', now() - $3::text::interval)`), n, i.key, i.changed); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, pool, schema, eddaui.Options{})
	var got struct {
		Oldest []struct{ Key, Overdue string }
	}
	if err := json.Unmarshal([]byte(s.get("/sagas.json")), &got); err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, o := range got.Oldest {
		if order += o.Key + " "; (o.Overdue != "") != (o.Key == "overdue") {
			t.Errorf("%s is overdue since %q", o.Key, o.Overdue)
		}
	}
	if want := "overdue old waits on-its-way fresh "; order != want {
		t.Errorf("the quiet ones are %s, want %s", order, want)
	}
	if row := regexp.MustCompile(`<tr id="o-.*`).FindString(s.get("/sagas")); !strings.Contains(row, "overdue since") {
		t.Errorf("the first row is %s", row)
	}
}

// The rate and the bars of an endpoint are of its sagas and its plain handlers together.
func TestPaceOfAnEndpoint(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	changeMuch(t, pool, schema)
	for saga, steps := range map[string]int{"order": 20, "": 10} {
		if _, err := pool.Exec(t.Context(), parsed.Render(`INSERT INTO :schema.saga_counter
			SELECT date_trunc('hour', now(), 'UTC'), 'orders', $1, '', 1, 1, now() - interval '1 minute', now(), 0, $2,
				0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0`), saga, steps); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, pool, schema, eddaui.Options{})
	var got struct {
		Endpoints []struct {
			Pace struct {
				PerMinute float64 `json:"handled_per_minute"`
				Hours     []int   `json:"handled_by_hour"`
			}
		}
	}
	if err := json.Unmarshal([]byte(s.get("/now.json")), &got); err != nil {
		t.Fatal(err)
	}
	p := got.Endpoints[0].Pace
	if p.PerMinute < 20 || p.PerMinute > 30 || len(p.Hours) != 24 || p.Hours[23] != 30 {
		t.Errorf("the pace is %+v", p)
	}
	body := s.get("/now")
	if !strings.Contains(body, "<title>30 messages in 24 hours, 30 at most in one, 30 in the last</title>") {
		t.Error("the bars have no name that says what they show")
	}
	if !strings.Contains(s.get("/sagas"), "<title>3 instances started in 24 hours") {
		t.Error("the sagas do not say how many have started")
	}
}
