package persistence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
)

// A save reaches its row by the ctid that was loaded. A transaction has no snapshot between its statements, so vacuum
// may give that place to a different row, or to a later version of the same row.
//
// This test is not parallel: vacuum frees a place only if no other transaction could still read it.
func TestReusedPlaceIsNotTakenForTheRow(t *testing.T) { //nolint:paralleltest // see above
	for name, c := range map[string]struct{ before, between func(database, scene) }{
		"new life": {nothing, func(db database, s scene) {
			s.won("complete", s.then(write(persistence.Complete, s.released(key("7")))), true)
			db.vacuum(s.T)
			s.won("start anew", s.then(start(order("7", 2))), true)
		}},
		"another instance": {nothing, func(db database, s scene) {
			s.won("complete", s.then(write(persistence.Complete, s.released(key("7")))), true)
			db.vacuum(s.T)
			s.won("start another", s.then(start(order("8", 2))), true)
		}},
		// Postgres keeps the first place of a row for the index, so this case uses the second and the fourth version.
		"later version": {updateAndVacuum, func(db database, s scene) {
			updateAndVacuum(db, s)
			s.update("7")
		}},
	} {
		for _, op := range []persistence.Op{persistence.Check, persistence.Update, persistence.Complete} {
			// A concurrent automatic vacuum holds a snapshot, which may prevent this vacuum from freeing the place.
			reused := false
			for end := time.Now().Add(pgdev.Patience(time.Minute)); !reused && !t.Failed() && time.Now().Before(end); {
				t.Run(fmt.Sprintf("%s, op %d", name, op), func(t *testing.T) {
					reused = saveAtReusedPlace(t, op, c.before, c.between)
				})
			}
			if !reused && !t.Failed() {
				t.Errorf("%s: vacuum never freed the place, so nothing is tested", name)
			}
		}
	}
}

func nothing(database, scene) {}

func updateAndVacuum(db database, s scene) {
	s.update("7")
	db.vacuum(s.T)
}

// saveAtReusedPlace reports whether the place was reused.
func saveAtReusedPlace(t *testing.T, op persistence.Op, before, between func(database, scene)) bool {
	db := open(t)
	s := db.scene(t, false)
	s.won("start", s.then(start(order("7", 1))), true)
	before(db, s)
	late := s.begin()
	f := late.get(key("7"))
	// The extended protocol keeps the last statement open, with its snapshot, until the next one.
	if _, err := late.tx.(postgresTx).tx.Exec(t.Context(), "SET LOCAL lock_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	between(db, s)
	now := s.released(persistence.Ref{Saga: "order", Key: db.onlyKey(t)})
	s.won("save what was loaded", late.save(write(op, f)), false)
	late.commit()
	return now.Row == f.Row
}

func (s scene) update(k string) {
	s.Helper()
	s.won("update", s.then(write(persistence.Update, s.released(key(k)))), true)
}

func (db database) vacuum(t *testing.T) {
	t.Helper()
	if _, err := pgtest.Pool(t).Exec(t.Context(), db.render("VACUUM (TRUNCATE off) :schema.saga")); err != nil {
		t.Fatal(err)
	}
}

func (db database) onlyKey(t *testing.T) (k string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), db.render("SELECT key FROM :schema.saga")).Scan(&k); err != nil {
		t.Fatal(err)
	}
	return k
}
