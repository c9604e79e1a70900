package dispatch

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestEachStatementOfTheLoopsIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "statements.sql")
}

func TestDueManifestIsQueuedAndDispatchedOnce(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	s := w.scheduler()
	if c := w.cycle(s); c.queued != 3 {
		t.Fatalf("%+v, want 3 queued", c)
	}
	if c := w.cycle(s); c.loaded != 0 {
		t.Fatalf("%+v, want nothing due", c)
	}
	w.drain(s)
	if got := w.states("m1"); got != "schedule active 1" {
		t.Errorf("m1: %s", got)
	}
	w.onceEach()
	w.due("m1") // while its run is active the manifest is left alone
	if c := w.cycle(s); c.loaded != 0 {
		t.Errorf("%+v: a manifest whose run goes on was evaluated", c)
	}
	w.end("m1", "succeeded")
	if c := w.cycle(s); c.queued != 1 {
		t.Errorf("%+v, want m1 queued again", c)
	}
}

func TestSchedulersOfOneSchemaShareTheWork(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(200)
	for range 2 {
		w.run(w.scheduler(func(o *Options) { o.Evaluate, o.Dispatch = 50*time.Millisecond, 50*time.Millisecond }))
	}
	w.await("200 messages", func() bool { return w.count("SELECT count(*) FROM :schema.sent_message") >= 200 })
	w.onceEach()
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 200 {
		t.Errorf("%d messages, want 200", n)
	}
}
