package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// scheduleHarness has a server that notes the times of commits, which that of the other tests does not.
func scheduleHarness(t *testing.T) *harness {
	t.Helper()
	t.Setenv("DATABASE_URL", "")
	server, db, err := startServer(t.Context(), io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &harness{dsn: server.DSN(), db: db, log: t.Output()}
}

// Every part runs, two processes included, with its effects counted, and is reported.
func TestScheduleLeavesTheRightEffects(t *testing.T) {
	h := scheduleHarness(t)
	o := options{run: Schedule, n: 200, rounds: 1, quick: true, size: 10_000}
	report, err := h.report(t.Context(), o, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Schedule) != 5 {
		t.Errorf("%d cases, want 5: three rates, the lateness, 1e4 stored", len(report.Schedule))
	}
	var out strings.Builder
	if err := report.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"schedule-rate-4p", "schedule-lateness", "schedule-stored-1e4",
		"RATIO schedule-rate 2p/1p"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}

	// A message that is lost, and a duplicate message.
	c := o.scheduleSizes().cases()[0]
	for _, change := range []string{"DELETE FROM %s.queue_1 WHERE id = (SELECT id FROM %s.queue_1 LIMIT 1)",
		"INSERT INTO %s.queue_1 (due, id, kind, header, body) SELECT now(), id, kind, header, body FROM " +
			"%s.queue_1 LIMIT 1"} {
		if err := h.prepare(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := h.measure(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := h.checkSent(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := h.db.Exec(t.Context(), strings.ReplaceAll(change, "%s", c.Schema())); err != nil {
			t.Fatal(err)
		}
		if err := h.checkSent(t.Context(), c); err == nil || !strings.Contains(err.Error(), "wrong effects") {
			t.Errorf("%s: got %v, want an error about wrong effects", change, err)
		}
	}
	h.dropSchedule(context.WithoutCancel(t.Context()), []Case{c})
}

func TestScheduleIsNoWorkloadOfPeers(t *testing.T) {
	for run, want := range map[string]string{"schedule": "", "step,schedule,hot": "step,hot"} {
		if rest, wanted := withoutSchedule(run); rest != want || !wanted {
			t.Errorf("%s: %q, %v", run, rest, wanted)
		}
	}
	if rest, wanted := withoutSchedule("step,hot"); rest != "step,hot" || wanted {
		t.Errorf("%q, %v", rest, wanted)
	}
	if _, _, err := (options{run: Schedule}).work(); err == nil {
		t.Error("no rounds are no error")
	}
}

func TestWhatTheSchedulerMustKeep(t *testing.T) {
	late := ScheduleSummary{Summary: Summary{Case: Case{Workload: ScheduleLateness}, P99: 1249}, PutP99: 1251}
	ratio := Ratio{Workload: storedCPU, Above: "1e6", Below: "1e4", Value: 2.1}
	err := brokenDemands([]ScheduleSummary{late}, []Ratio{ratio})
	if err == nil || !strings.Contains(err.Error(), "1251 ms") || !strings.Contains(err.Error(), "2.1") {
		t.Errorf("got %v, want both to be refused", err)
	}
	late.PutP99, ratio.Value = 1249, 2
	if err := brokenDemands([]ScheduleSummary{late}, []Ratio{ratio}); err != nil {
		t.Error(err)
	}
	if err := brokenDemands(nil, []Ratio{{Workload: "step", Value: 10}}); err != nil {
		t.Error(err)
	}
}
