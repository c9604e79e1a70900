package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// refuseMany lets the server refuse statements of more than most rows that delete from the relay's queue, or write
// copies.
func (w *world) refuseMany(when, table, code string, most int) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE FUNCTION edda.refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		IF (SELECT count(*) FROM changed) > %d THEN RAISE EXCEPTION 'too many'
		USING ERRCODE = '%s'; END IF; RETURN NULL; END$$`, most, code))
	rows := map[string]string{"DELETE": "OLD", "INSERT": "NEW"}[when]
	w.exec(fmt.Sprintf(`CREATE TRIGGER refuse_many AFTER %s ON %s REFERENCING %s TABLE AS changed
		FOR EACH STATEMENT EXECUTE FUNCTION edda.refuse_many()`,
		when, table, rows))
}

// A settle fails whenever it has that many rows: the relay settles fewer rows at a time, and forwards no message again.
func TestRelayWhoseSettleFailsGivesNothingAgain(t *testing.T) {
	for name, c := range map[string]struct {
		when, code string
		keep       bool
	}{
		"statement timeout":          {"DELETE", "57014", false},
		"idle in the transaction":    {"DELETE", "25P03", false},
		"out of memory for a copy":   {"INSERT", "53200", true},
		"an error of the copy's own": {"INSERT", "P0001", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.installRelay()
			table, o := w.queue("border"), soonRelayed()
			if c.keep {
				table, o.Keep = "edda.outbox", 3600e9
			}
			w.refuseMany(c.when, table, c.code, 4)
			want := w.sendCrossed(60)
			a := &abroad{refuse: func(d *saga.Delivery) error {
				if d.Info.ID == want[7] {
					return saga.Permanent(errNo)
				}
				return nil
			}}
			w.runRelay(w.relay(w.bus, o, a.forward))
			w.untilEmpty("border")
			if got := a.ids(); !slices.Equal(got, slices.Delete(slices.Clone(want), 7, 8)) {
				t.Errorf("the other side was given\n%v, want\n%v", got, want)
			}
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent' AND attempts = 1
				AND error = 'no'`)
			if c.keep {
				w.want(59, `SELECT count(DISTINCT id) FROM edda.outbox`)
			}
		})
	}
}

// A message whose copy cannot be written is relayed all the same: only its copy is given up, and that is logged.
func TestRelayGivesUpACopyThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(40)
	w.exec(`ALTER TABLE edda.outbox ADD CONSTRAINT picky CHECK (id <> '` + want[17].String() + `') NOT VALID`)
	a, log, o := &abroad{}, &kept{}, soonRelayed()
	o.Keep, o.Logger = 3600e9, log.logger()
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("the other side was given\n%v, want\n%v", got, want)
	}
	w.want(39, `SELECT count(*) FROM edda.outbox`)
	if text := log.String(); strings.Count(text, "the copy of a relayed message was not kept") != 1 ||
		!strings.Contains(text, want[17].String()) {
		t.Error(text)
	}
}

// A message with the version of a newer program stops a relay for UnknownKindTimeout, once: then each such message
// becomes a dead letter, and the other messages are relayed.
func TestRelayStepsOverWhatNobodyReads(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	var want []saga.ID
	for range 5 {
		want = append(want, w.sendCrossed(3)...)
		w.newer("border", crossed{}.Kind())
		w.newer("border", crossed{}.Kind())
	}
	a, o := &abroad{}, soonRelayed()
	o.UnknownKindTimeout = 500 * time.Millisecond
	w.runRelay(w.relay(w.bus, o, a.forward))
	begun := time.Now()
	w.until("the first are relayed", func() bool { return len(a.ids()) == 3 })
	w.untilEmpty("border")
	if took := time.Since(begun); took < o.UnknownKindTimeout {
		t.Errorf("nothing waited for a newer program: it took %v", took)
	}
	w.newer("border", crossed{}.Kind())
	want = append(want, w.sendCrossed(1)...)
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
	w.want(11, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'newer program' AND attempts = 0`)
}

// A turn takes at most BatchBytes, headers included, and a larger message is taken alone.
func TestRelayTakesNoMoreThanBatchBytes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	scales := w.weigh()
	const batchBytes = 200_000
	put := func(rows, header, body int) {
		w.exec(`INSERT INTO `+w.queue("border")+
			` (due, id, kind, header, body) SELECT clock_timestamp(), gen_random_uuid(), $1, $2, $3
				FROM generate_series(1, $4)`,
			crossed{}.Kind(), []byte(`{"large":"`+strings.Repeat("x", header)+`"}`), []byte(strings.Repeat("y", body)),
			rows)
	}
	put(20, 30_000, 30_000)
	put(1, 30_000, 3*batchBytes)
	put(1, 3*batchBytes, 30_000)
	put(20, 30_000, 30_000)
	o := soonRelayed()
	o.BatchBytes = batchBytes
	var turns []int
	stop := w.runRelay(w.relay(w.bus, o, func(_ context.Context, messages []*saga.Delivery) []error {
		bytes := 0
		for _, m := range messages {
			bytes += len(m.Body) + len(m.Info.Header("large"))
		}
		if turns = append(turns, len(messages)); bytes > batchBytes && len(messages) > 1 {
			t.Errorf("a turn of %d messages has %d bytes", len(messages), bytes)
		}
		return nil
	}))
	w.untilEmpty("border")
	stop()
	if want := []int{3, 3, 3, 3, 3, 3, 2, 1, 1, 3, 3, 3, 3, 3, 3, 2}; !slices.Equal(turns, want) {
		t.Errorf("the turns took %v messages, want %v", turns, want)
	}
	if most := scales.heaviest.Load(); most > 3*batchBytes+90_000 {
		t.Errorf("the server sent %d bytes at once, the largest message has %d", most, 3*batchBytes+30_000)
	}
}
