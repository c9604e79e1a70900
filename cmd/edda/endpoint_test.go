package main

import (
	"strings"
	"testing"
)

// An endpoint gets partitions, loses them, and the command reports the result.
func TestPartitionsOfAnEndpoint(t *testing.T) {
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	w.prints(w.want(exitDone, "endpoint", "partitions", "orders", "4").out, `
		| Endpoint orders has 4 partitions, and had 0. 0 messages went back to its own queue.`)
	w.prints(w.want(exitDone, "endpoint", "partitions", "orders", "2", "--json").out, `
		| {
		|  "endpoint": "orders",
		|  "partitions": 2,
		|  "before": 4,
		|  "moved": 0
		| }`)
	w.prints(w.want(exitDone, "endpoint", "partitions", "orders", "--remove").out, `
		| Endpoint orders has no partitions, and had 2. 0 messages went back to its own queue.`)
	for _, bad := range [][]string{{"orders"}, {"orders", "0"}, {"orders", "257"}, {"orders", "3", "--remove"}} {
		w.want(exitUsage, append([]string{"endpoint", "partitions"}, bad...)...)
	}
}

func TestEndpoints(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "endpoint", "list").out, `| No endpoint is installed in schema "SCHEMA".`)
	w.want(exitDone, "migrate", "install", "orders", "billing")
	w.want(exitDone, "migrate", "install", "--relay", "shop.events")
	w.prints(w.want(exitDone, "endpoint", "pause", "orders", "--reason", "closed\x1b[2J").out, `
		| Endpoint orders is paused. "edda endpoint resume orders" ends that.`)
	w.prints(w.want(exitDone, "endpoint", "concurrency", "orders", "1").out,
		`| Each process of endpoint orders has 1 worker.`)
	w.prints(w.want(exitDone, "endpoint", "concurrency", "orders", "2").out,
		`| Each process of endpoint orders has 2 workers.`)
	w.prints(w.want(exitDone, "endpoint", "list").out, `
		| ENDPOINT STATE SINCE PAUSED BY REASON CONCURRENCY BY HISTORY
		| billing open - - - program endpoint program
		| orders paused TIME ACTOR closed\x1b[2J 2 endpoint program
		| shop.events open - - - - relay program`)
	var listed struct{ Endpoints []endpointJSON }
	w.decode(&listed, "endpoint", "list", "--json")
	if e := listed.Endpoints; len(e) != 3 || !e[2].Relay || e[1].Relay || e[0].Paused || e[0].Concurrency != nil ||
		!e[1].Paused || e[1].PausedAt == nil || *e[1].Concurrency != 2 {
		t.Errorf("%+v", listed)
	}
	w.prints(w.want(exitDone, "endpoint", "resume", "orders").out, `| Endpoint orders is resumed.`)
	w.prints(w.want(exitDone, "endpoint", "concurrency", "orders", "--reset", "--json").out, `
		| {
		|  "concurrency": null,
		|  "endpoint": "orders"
		| }`)
	w.prints(w.want(exitDone, "endpoint", "list").out, `
		| ENDPOINT STATE SINCE PAUSED BY REASON CONCURRENCY BY HISTORY
		| billing open - - - program endpoint program
		| orders open - - - program endpoint program
		| shop.events open - - - - relay program`)
}

// The pace of an endpoint has a number for each minute, even if it has handled nothing.
func TestEndpointPace(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "endpoint", "pace").out, `| No endpoint is installed in schema "SCHEMA".`)
	w.want(exitDone, "migrate", "install", "orders", "billing", "old")
	w.want(exitDone, "migrate", "install", "--relay", "shop.events")
	for endpoint, minutes := range map[string]string{
		"orders": "array_fill(2, ARRAY[60], ARRAY[0])", "old": "NULL",
	} {
		w.exec(`INSERT INTO edda.saga_counter SELECT date_trunc('hour', now(), 'UTC') - h * interval '1 hour', $1, '',
			'', 1, 1, now(), now(), 0, 120, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			`+minutes+`
			FROM generate_series(0, 1) h`, endpoint)
	}
	line := strings.Repeat("█", 60)
	w.prints(w.want(exitDone, "endpoint", "pace").out, `
		| ENDPOINT A MINUTE HANDLED RETRIED DEAD LAST 60 MINUTES
		| billing 0.0 0 0 0 `+strings.Repeat("▁", 60)+`
		| old 240.0 - - - programs of an older version count by the hour
		| orders 240.0 120 0 0 `+line)
	var got struct {
		Paces []struct {
			Endpoint  string
			PerMinute float64 `json:"handled_per_minute"`
			Hours     []int64 `json:"handled_by_hour"`
			Minutes   []int64 `json:"handled_by_minute"`
			Untold    int64   `json:"not_by_minute"`
		}
	}
	w.decode(&got, "endpoint", "pace", "old", "--json")
	if p := got.Paces; len(p) != 1 || p[0].Minutes != nil || p[0].Untold != 240 || len(p[0].Hours) != 24 {
		t.Errorf("%+v", p)
	}
	w.decode(&got, "endpoint", "pace", "orders", "--json")
	if p := got.Paces; len(p) != 1 || len(p[0].Minutes) != 60 || p[0].Minutes[59] != 2 || p[0].Untold != 0 ||
		p[0].PerMinute != 240 {
		t.Errorf("%+v", p)
	}
	says(t, w.want(exitNotFound, "endpoint", "pace", "nowhere").err, "not installed", "nowhere")
}

func TestEndpointsRefuse(t *testing.T) {
	w := migrated(t)
	for command, complaint := range map[string]string{
		"pause nowhere": "not installed", "resume nowhere": "not installed", "concurrency nowhere 3": "not installed",
		"concurrency nowhere --reset": "not installed",
	} {
		says(t, w.want(exitNotFound, append([]string{"endpoint"}, strings.Fields(command)...)...).err, complaint,
			"nowhere")
	}
	for command, complaint := range map[string]string{
		"concurrency a": "--reset", "concurrency a 2 --reset": "--reset", "concurrency a 0": "edda endpoint pause",
		"concurrency a two": "is not a number of workers", "pause": "arg",
	} {
		says(t, w.want(exitUsage, append([]string{"endpoint"}, strings.Fields(command)...)...).err, complaint)
	}
	says(t, w.want(exitFailed, "endpoint", "concurrency", "a", "20000").err, "want 1 to 10000")
}
