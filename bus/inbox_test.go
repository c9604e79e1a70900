package bus_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

func TestInboxTxBelongsToItsTransaction(t *testing.T) {
	w := newWorld(t, bus.Options{})
	errBack := errors.New("back")
	for n, want := range []bool{true, true, false} {
		err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			if fresh, err := w.bus.InboxTx(t.Context(), tx, "payments", "7"); err != nil || fresh != want {
				t.Errorf("time %d: %v, %v", n+1, fresh, err)
			}
			if n == 0 {
				return errBack
			}
			return nil
		})
		if err != nil && !errors.Is(err, errBack) {
			t.Fatal(err)
		}
	}
	w.want(1, `SELECT count(*) FROM edda.inbox`)
	if got := states(w.arrive("", arrival("7", "1"))); got != "repeated" {
		t.Errorf("an intake of the source: %s", got)
	}
	if _, err := w.pool.Exec(t.Context(), w.sql(`SELECT edda.received('orders', '')`)); pgerr.Code(err) != "22023" {
		t.Error(err)
	}
}

// The SQL function has the same result for every driver and in every isolation level.
func TestReceivedOverDatabaseSQL(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			db, err := sql.Open(driver, pgdev.DSN(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if db.SetMaxOpenConns(1); w.role != "" {
				if _, err := db.ExecContext(t.Context(), `SET ROLE "`+w.role+`"`); err != nil {
					t.Fatal(err)
				}
			}
			for n, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted,
				sql.LevelRepeatableRead, sql.LevelSerializable} {
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
				if err != nil {
					t.Fatal(err)
				}
				for m, id := range []string{"7", newID(t).String()} {
					var fresh, again bool
					if err := tx.QueryRowContext(t.Context(), w.sql(`SELECT edda.received($1, $2)`), "orders",
						id).Scan(&fresh); err != nil || fresh != (n <= 1 || m == 1) {
						t.Errorf("%v: %s is fresh: %v, %v", level, id, fresh, err)
					}
					if err := tx.QueryRowContext(t.Context(), w.sql(`SELECT edda.received($1, $2)`), "orders",
						id).Scan(&again); err != nil || again {
						t.Errorf("%v: %s is fresh again: %v, %v", level, id, again, err)
					}
				}
				end := tx.Commit
				if n == 0 {
					end = tx.Rollback // and its id is forgotten
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
			}
			w.want(4, `SELECT count(*) FROM edda.inbox WHERE source = 'orders'`)
		})
	}
}

// An id stays in the inbox for three turns of the ring. Every endpoint turns it, with the rights that it has.
func TestIngestedIDsOutliveThreeTurns(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	for turn := range 5 {
		want := "repeated"
		if turn == 0 || turn == 4 {
			want = "accepted"
		}
		if got := states(w.arrive("notes", arrival("7", "1"))); got != want {
			t.Errorf("after %d turns: %s, want %s", turn, got, want)
		}
		w.exec(`UPDATE edda.ring SET since = since - keep`)
		bus.CleanNow(t.Context(), w.bus)
		w.want((turn+1)%4, `SELECT slot FROM edda.ring WHERE name = 'inbox'`)
		w.want((turn+1)%4, `SELECT slot FROM edda.ring WHERE name = 'outbox'`)
	}
}

// The values of Envelope come back by Ingest: conversation, correlation, instance, sender and the user's headers.
func TestEnvelopeSurvivesTheBorder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	id := rapid.Custom(func(r *rapid.T) saga.ID {
		return saga.ID(rapid.SliceOfN(rapid.ByteRange(1, 255), 16, 16).Draw(r, "id"))
	})
	maybe := rapid.OneOf(id, rapid.Just(saga.ID{}))
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aä\"\\\n\t €☃z")), 1, 12, -1)
	rapid.Check(t, func(r *rapid.T) {
		info := saga.Info{
			ID: id.Draw(r, "id"), Kind: "order.shipped", ConversationID: id.Draw(r, "conversation"),
			CorrelationID: id.Draw(r, "correlation"),
			RelatedTo:     id.Draw(r, "related"), Instance: maybe.Draw(r, "instance"), Origin: maybe.Draw(r, "origin"),
			Intent: rapid.SampledFrom([]saga.Intent{saga.Command, saga.Event, saga.Answer}).Draw(r, "intent"),
			From:   rapid.SampledFrom([]string{"", "orders"}).Draw(r, "from"),
		}
		if rapid.Bool().Draw(r, "begins") {
			info.ConversationID, info.CorrelationID, info.RelatedTo = info.ID, info.ID, saga.ID{}
		}
		for name, value := range rapid.MapOfN(text, text, 0, 4).Draw(r, "headers") {
			info.AddHeader(name, value)
		}
		crossing := info
		crossing.Firing = &saga.Firing{Manifest: "m", Run: info.ID, Attempt: 1}
		if got := states(w.arrive("notes", outbox.IngestMessage{ID: info.ID.String(), Kind: info.Kind,
			Header: outbox.Envelope(&crossing), Body: []byte("{}")})); got != "accepted" {
			r.Fatalf("%s", got)
		}
		messages, err := w.operator().Messages().Peek(t.Context(), "notes", operate.PeekOptions{Limit: 1})
		if err != nil || len(messages) != 1 {
			r.Fatalf("%d messages: %v", len(messages), err)
		}
		got := messages[0].Info
		got.Attempt, got.Sent, got.Due = 0, info.Sent, info.Due
		if diff := cmp.Diff(flat(info), flat(got)); diff != "" {
			r.Fatalf("(-here +there)\n%s", diff)
		}
		w.exec(`DELETE FROM ` + w.queue("notes"))
	})
}

// flat returns the fields of an Info for a comparison.
func flat(i saga.Info) map[string]string {
	all := map[string]string{"id": i.ID.String(), "kind": i.Kind, "intent": i.Intent.String(), "from": i.From,
		"conversation": i.ConversationID.String(),
		"correlation":  i.CorrelationID.String(), "related": i.RelatedTo.String(), "instance": i.Instance.String(),
		"origin": i.Origin.String()}
	if i.Firing != nil {
		all["fire"] = i.Firing.Manifest
	}
	for name, value := range i.Headers() {
		all["header "+name] = value
	}
	return all
}
