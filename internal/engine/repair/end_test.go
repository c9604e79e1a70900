package repair_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// When an instance is ended, its timeouts are deleted, and its key may start again.
func TestEnd(t *testing.T) {
	both(t, func(w *world) {
		stop := w.run()
		began := w.begin()
		stop()
		ctx := operate.WithReason(w.Context(), "a test order")
		if _, err := w.op.End(ctx, operate.Target{Saga: "order", Key: "7", Version: 9}); !errors.Is(err,
			operate.ErrVersion) {
			t.Errorf("another version: %v", err)
		}
		if _, err := w.op.End(ctx, operate.Target{Saga: "order", Key: "7", ID: saga.ID{15: 1}}); !errors.Is(err,
			operate.ErrNoInstance) {
			t.Errorf("another instance: %v", err)
		}
		done, err := w.op.End(ctx, operate.Target{Saga: "order", Key: "7", ID: began.ID, Version: 1, Definition: w.def})
		w.must(err)
		if done.ID != began.ID || done.Version != 1 || len(done.Pending) != 2 {
			t.Errorf("%+v", done)
		}
		if n := w.count(`SELECT count(*) FROM edda.queue_1`); n != 0 || w.living().Version != 0 {
			t.Errorf("%d timeouts wait, and it lives: %+v", n, w.living())
		}
		lives, err := w.see.History().Lives(ctx, "order", "7", 5)
		w.must(err)
		if len(lives) != 1 || lives[0].Outcome != "stopped" || lives[0].Ended.IsZero() {
			t.Errorf("%+v", lives)
		}
		if v := w.versions(began.ID); len(v) != 2 || v[1].Change != history.Stopped || v[1].By == "" ||
			v[1].Version != 2 {
			t.Errorf("%+v", v)
		}
		if e := w.entry(); e.Verb != "saga.end" || e.Target != "order/7" || e.Reason != "a test order" ||
			e.After != nil {
			t.Errorf("%+v", e)
		}
		if _, err := w.op.End(ctx, order7); !errors.Is(err, operate.ErrNoInstance) {
			t.Errorf("ended twice: %v", err)
		}
		w.run()
		if again := w.begin(); again.ID == began.ID {
			t.Error("the key has not started anew")
		}
	})
}

// A handler that is at work on an instance when it is ended loses its save, or End waits for it.
func TestEndBesideAHandler(t *testing.T) {
	both(t, func(w *world) {
		w.run()
		w.begin()
		release := w.holds()
		ended := make(chan error, 1)
		go func() {
			_, err := w.op.End(w.Context(), order7)
			ended <- err
		}()
		release()
		w.must(<-ended)
		w.until("the message has met its fate", func() bool {
			return w.count(`SELECT count(*) FROM edda.queue_1`) == 0
		})
		if i := w.living(); i.Version != 0 {
			t.Errorf("it lives: %+v", i)
		}
	})
}

// If a run of a manifest started the instance, the run ends with it.
func TestEndCancelsItsRun(t *testing.T) {
	w := newWorld(t, saga.Options{})
	w.run()
	owner, run := pgtest.Pool(t), saga.ID{0: 7}
	for _, sql := range []string{
		`INSERT INTO edda.manifest (name, definition, retries, kind, body) VALUES ('m', '{}', 2, 'order.place', '{}')`,
		`INSERT INTO edda.run (id, manifest_id, origin, state, due, ready, attempt)
			SELECT '07000000-0000-0000-0000-000000000000', id, 'manual', 'active', now(), now(), 1 FROM edda.manifest`,
		`INSERT INTO edda.run_attempt (run, attempt, message_id)
			VALUES ('07000000-0000-0000-0000-000000000000', 1, gen_random_uuid())`,
	} {
		pgtest.Exec(t, owner, strings.ReplaceAll(sql, "edda.", `"`+w.schema+`".`))
	}
	_, err := w.bus.Send(t.Context(), place{Order: "7"}, saga.WithFiring(saga.Firing{Manifest: "m", Run: run,
		Attempt: 1}))
	w.must(err)
	w.until("order 7 lives", func() bool { return w.living().Version == 1 })
	_, err = w.op.End(w.Context(), order7)
	w.must(err)
	if n := w.count(`SELECT count(*) FROM edda.run WHERE id = $1 AND state = 'cancelled'
		AND error LIKE '%order/7%'`, run); n != 1 {
		t.Error("its run is not cancelled")
	}
}

// A session may keep a plan that was made when vacuum had found the table of the instances empty.
func TestEndForbidsPlansThatReadTheTable(t *testing.T) {
	w := newWorld(t, saga.Options{})
	stop := w.run()
	w.begin()
	stop()
	pgtest.Exec(t, pgtest.Pool(t), strings.ReplaceAll(`CREATE FUNCTION edda.only_by_index() RETURNS trigger
		LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('enable_seqscan') = 'on' OR current_setting('enable_bitmapscan') = 'on' THEN
				RAISE 'a plan may read the whole table';
			END IF;
			RETURN old;
		END $$;
		CREATE TRIGGER only_by_index BEFORE DELETE ON edda.saga FOR EACH ROW EXECUTE FUNCTION edda.only_by_index()`,
		"edda.", `"`+w.schema+`".`))
	_, err := w.op.End(w.Context(), order7)
	w.must(err)
}
