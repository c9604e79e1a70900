package repair_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A running worker handles a fired timeout at once, and the timeout is gone.
func TestFireTimeout(t *testing.T) {
	both(t, func(w *world) {
		w.run()
		began := w.begin()
		fired, err := w.op.FireTimeout(w.Context(), of(0), "due")
		w.must(err)
		if fired.Name != "due" || !fired.Due.Before(began.Pending[0].Due.Add(-50*time.Minute)) {
			w.Errorf("%+v", fired)
		}
		w.until("it is handled", func() bool { return w.living().Version == 3 })
		if i := w.living(); w.state().Overdue != 1 || len(i.Pending) != 1 || i.Pending[0].Name != "" {
			w.Errorf("%+v", i)
		}
		v := w.versions(began.ID)
		if len(v) != 3 || v[1].Change != history.Retimed || v[1].By == "" {
			w.Errorf("%+v", v)
		}
		e := w.entry()
		if e.Verb != "timeout.fire" || e.Target != "order/7" || !strings.Contains(string(e.Before), `"name":"due"`) ||
			string(e.Before) == string(e.After) {
			w.Errorf("%+v", e)
		}
	})
}

func TestMoveAndCancelTimeout(t *testing.T) {
	w := newWorld(t, saga.Options{})
	stop := w.run()
	began := w.begin()
	stop()
	at := time.Date(2099, 1, 1, 0, 0, 0, 123456000, time.UTC)
	if _, err := w.op.CancelTimeout(t.Context(), of(0), "order.overdue"); !errors.Is(err, operate.ErrNoTimeout) {
		t.Errorf("a kind of which two are pending: %v", err)
	}
	moved, err := w.op.MoveTimeout(t.Context(), of(0), "due", at)
	w.must(err)
	i := w.living()
	if !moved.Due.Equal(at) || i.Version != 2 || len(i.Pending) != 2 || !i.Pending[0].Due.Equal(at) ||
		i.Pending[0].ID != began.Pending[0].ID || string(i.State) != string(began.State) {
		t.Errorf("%+v, %+v", moved, i)
	}
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE due = $1 AND id = $2`, at, [16]byte(moved.ID)); n != 1 {
		t.Error("its message was not moved")
	}
	_, version := w.op.MoveTimeout(t.Context(), of(1), "due", at)
	_, none := w.op.FireTimeout(t.Context(), of(0), "none")
	if !errors.Is(version, operate.ErrVersion) || !errors.Is(none, operate.ErrNoTimeout) {
		t.Errorf("%v, %v", version, none)
	}
	gone, err := w.op.CancelTimeout(t.Context(), of(0), began.Pending[1].ID.String())
	w.must(err)
	if i := w.living(); gone.ID != began.Pending[1].ID || len(i.Pending) != 1 || i.Pending[0].Name != "due" ||
		w.count(`SELECT count(*) FROM edda.queue_1`) != 1 {
		t.Errorf("%+v leaves %+v", gone, i)
	}
	if e := w.entry(); e.Verb != "timeout.cancel" || e.After != nil || e.Reason != "lost a message" {
		t.Errorf("%+v", e)
	}
	_, err = w.op.CancelTimeout(t.Context(), of(0), "order.overdue")
	w.must(err)
	if i := w.living(); len(i.Pending) != 0 || w.count(`SELECT count(*) FROM edda.saga WHERE timeouts IS NULL`) != 1 {
		t.Errorf("by its kind: %+v", i)
	}
}

// While a worker handles a timeout, it cannot be moved; if it is cancelled, the worker discards it.
func TestTimeoutInHand(t *testing.T) {
	both(t, func(w *world) {
		stop := w.run()
		began := w.begin()
		stop()
		tx, err := w.pool.BeginTx(w.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err == nil {
			_, err = tx.Exec(w.Context(), `SELECT FROM "`+w.schema+`".queue_1 FOR UPDATE`)
		}
		w.must(err)
		defer func() { _ = tx.Rollback(w.Context()) }()
		within := pgdev.Deadline(w)
		_, fire := w.op.FireTimeout(within, of(0), "due")
		_, move := w.op.MoveTimeout(within, of(0), "due", time.Now().Add(time.Hour))
		if !errors.Is(fire, operate.ErrInHand) || !errors.Is(move, operate.ErrInHand) || w.living().Version != 1 {
			w.Errorf("%v, %v", fire, move)
		}
		_, err = w.op.CancelTimeout(within, of(0), "due")
		w.must(err)
		w.must(tx.Rollback(w.Context()))
		w.must(w.makeDue(began.Pending[0].ID))
		w.run()
		w.until("the worker discards it", func() bool {
			return w.count(`SELECT count(*) FROM edda.discarded WHERE reason LIKE '%cancelled%'`) == 1
		})
		if s := w.state(); s.Overdue != 0 {
			w.Errorf("%+v", s)
		}
	})
}

// makeDue makes a message due now, without changing its instance.
func (w *world) makeDue(id saga.ID) error {
	_, err := w.pool.Exec(w.Context(), `UPDATE "`+w.schema+`".queue_1 SET due = now() WHERE id = $1`, [16]byte(id))
	return err
}
