package eddaui_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An instance with an overdue timeout comes first, then the instances that have received nothing for longest.
// Completed ones, which are only remembered, wait for nothing.
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

// count writes the counters of a process that has handled these messages in an endpoint, with its sagas and plain
// handlers.
func count(t *testing.T, pool *pgxpool.Pool, schema, endpoint string, of ...counters.Saga) {
	t.Helper()
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	err = counters.New(parsed).Add(t.Context(), pool, counters.Endpoint{
		Name: endpoint, Concurrency: 1, BatchMax: 1, Since: time.Minute, Sagas: of})
	if err != nil {
		t.Fatal(err)
	}
}

// The rate, the line and the bars of an endpoint count its sagas and its plain handlers together, on its page, in the
// list and for programs. An endpoint that has handled nothing has a flat line, a relay has no line, and an endpoint
// that only older programs run has a text instead.
func TestPaceOfAnEndpoint(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	changeMuch(t, pool, schema)
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"idle", "old"} {
		if err := op.Queues().Install(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	order, plain := counters.Saga{Saga: "order"}, counters.Saga{}
	order.Sums[counters.Steps], order.Sums[counters.Starts] = 20, 3
	plain.Sums[counters.Steps], plain.Sums[counters.Retries], plain.Sums[counters.Dead] = 10, 1, 2
	count(t, pool, schema, "orders", order, plain)
	count(t, pool, schema, "old", plain)
	if _, err := pool.Exec(t.Context(), parsed.Render(`UPDATE :schema.saga_counter SET minute_steps = NULL,
		minute_retries = NULL, minute_dead = NULL WHERE endpoint = 'old'`)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, pool, schema, eddaui.Options{})
	type pace struct {
		PerMinute float64 `json:"handled_per_minute"`
		Hours     []int   `json:"handled_by_hour"`
		Minutes   []int   `json:"handled_by_minute"`
		Dead      []int   `json:"dead_by_minute"`
		Untold    int     `json:"not_by_minute"`
	}
	var got struct {
		Endpoints []struct{ Pace pace }
	}
	if err := json.Unmarshal([]byte(s.get("/now.json")), &got); err != nil {
		t.Fatal(err)
	}
	in := func(numbers []int) (sum int) {
		for _, n := range numbers {
			sum += n
		}
		return sum
	}
	for n, want := range []string{"0 0 0 60", "10 0 10 0", "30 30 0 60"} {
		p := got.Endpoints[n].Pace
		if had := fmt.Sprint(in(p.Hours), in(p.Minutes), p.Untold, len(p.Minutes)); had != want || len(p.Hours) != 24 {
			t.Errorf("the pace of endpoint %d is %+v, want %s", n, p, want)
		}
	}
	if p := got.Endpoints[2].Pace; p.PerMinute < 15 || p.PerMinute > 30 || in(p.Dead) != 2 {
		t.Errorf("the pace is %+v", p)
	}
	var one struct{ Paces []pace }
	if err := json.Unmarshal([]byte(s.get("/endpoints/orders.json")), &one); err != nil || len(one.Paces) != 1 ||
		in(one.Paces[0].Minutes) != 30 {
		t.Errorf("the page of the endpoint has the pace %+v, %v", one, err)
	}
	line := regexp.MustCompile(`<title>30 messages in 60 minutes, at most 30 in a minute, (0|30) in the last ` +
		`minute, 1 attempt ` +
		`failed, 2 died</title><path d="M1 19.*L\d+ 1[L"].*<path class="bad" d="M1\d+ 20v-5"/>`)
	flat := regexp.MustCompile(`<title>0 messages in 60 minutes, at most 0 in a minute, 0 in the last minute</title>` +
		`<path d="M1 19(L\d+ 19){59}"/></svg>`)
	for _, path := range []string{"/", "/endpoints/orders"} {
		if body := s.get(path); !line.MatchString(body) {
			t.Errorf("%s has no line of the last 60 minutes:\n%s", path, body)
		}
	}
	for _, path := range []string{"/", "/endpoints/idle"} {
		if body := s.get(path); !flat.MatchString(body) {
			t.Errorf("%s has no flat line:\n%s", path, body)
		}
	}
	for path, lines := range map[string]int{"/": 2, "/endpoints/old": 0} {
		if body := s.get(path); !strings.Contains(body, "by the hour only") ||
			strings.Count(body, `class="spark line"`) != lines {
			t.Errorf("%s does not say that nothing is known by the minute:\n%s", path, body)
		}
	}
	count(t, pool, schema, "old", plain)
	if body := s.get("/endpoints/old"); !strings.Contains(body, "2 died; in this hour and the previous one 10 more, "+
		"which programs of an older version counted by the hour</title>") {
		t.Errorf("what an older program handles beside a newer one is not told:\n%s", body)
	}
	if !strings.Contains(s.get("/endpoints/orders"), "<title>30 messages in 24 hours, at most 30 in an hour, ") {
		t.Error("the bars have no name that says what they show")
	}
	if !strings.Contains(s.get("/sagas"), "<title>3 instances started in 24 hours") {
		t.Error("the sagas do not say how many have started")
	}
}

// The page of an endpoint shows for each saga its failures, how long its handlers and its messages take, and how
// batches wait for its instances.
func TestCountersOfAnEndpoint(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	changeMuch(t, pool, schema)
	hot := counters.Saga{Saga: "order", Store: "optimistic"}
	for n, value := range map[counters.Number]int64{
		counters.Steps: 100, counters.Retries: 3, counters.Dead: 2, counters.Conflicts: 41,
		counters.Waits: 80, counters.WaitTimeouts: 17,
		counters.Handler: int64(time.Second), counters.Critical: int64(300 * time.Second),
		counters.Batch: int64(10 * time.Second), counters.Wait: int64(6 * time.Second),
		counters.Turn: int64(time.Second),
	} {
		hot.Sums[n] = value
	}
	count(t, pool, schema, "orders", hot, counters.Saga{Sums: counters.Sums{counters.Steps: 10}})
	s := serve(t, pool, schema, eddaui.Options{})
	_, table, _ := strings.Cut(s.get("/endpoints/orders"), `aria-label="Counters"`)
	var cells []string
	for _, cell := range regexp.MustCompile(`(?s)<t[dh] ?[^>]*>(.*?)</t[dh]>`).FindAllStringSubmatch(table, 27) {
		cells = append(cells, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell[1], ""))
	}
	want := "Handler|Handled|Retried|Dead|Conflicts|Handler, mean|Due to commit, mean|Waiting for instances|" +
		"Waits that timed out|plain handlers|10|–|–|–|0 s|0 s|–|–|order|100|3|2|41|10 ms|3.0 s|70 %|17 of 80"
	if got := strings.Join(cells, "|"); got != want {
		t.Errorf("the page has\n%s\nwant\n%s", got, want)
	}
}
