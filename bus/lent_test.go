package bus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// intruder is a message whose handler runs its SQL in the transaction.
type intruder struct{ SQL string }

func (intruder) Kind() string { return "lent.intruder" }

// intrusions has statements of a handler that may change the connection of all handlers. unseen: Edda cannot detect it
// in the text. refused: Edda refuses it.
var intrusions = map[string]struct {
	sql       string
	unseen    bool
	refused   bool
	superuser bool // only a superuser may do it
}{
	"role":                       {sql: "SET LOCAL ROLE pg_monitor"},
	"role of the session":        {sql: "SET ROLE pg_monitor"},
	"role by a function":         {sql: "SELECT set_config('role', 'pg_monitor', false)"},
	"role unseen":                {sql: "DO $$ BEGIN EXECUTE 'SET LO' || 'CAL ROLE pg_monitor'; END $$", unseen: true},
	"read only":                  {sql: "SET TRANSACTION READ ONLY"},
	"deallocate":                 {sql: "DEALLOCATE ALL", refused: true},
	"deallocate behind another":  {sql: "SELECT ';'; DEALLOCATE PREPARE ALL", refused: true},
	"deallocate unseen":          {sql: "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", unseen: true},
	"statement timeout":          {sql: "SET LOCAL statement_timeout = '1s'"},
	"statement timeout, session": {sql: "SET statement_timeout = '1s'"},
	"search path":                {sql: "SET LOCAL search_path = nowhere"},
	"search path, session":       {sql: "SELECT 1; SET search_path = nowhere"},
	"durability":                 {sql: "SET synchronous_commit = off"},
	"idle timeout":               {sql: "SET idle_in_transaction_session_timeout = '1s'"},
	"triggers":                   {sql: "SET LOCAL session_replication_role = replica", superuser: true},
	"commit behind another":      {sql: "SELECT 1 /* ; */; COMMIT; BEGIN", refused: true},
}

// One message whose handler had set a role, made the transaction read-only or deallocated all statements ended the
// endpoint, and again after each restart; or its settings applied to the next handlers of its batch.
func TestSettingsOfAHandlerStayItsOwn(t *testing.T) {
	t.Parallel()
	for name, intrusion := range intrusions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.ledger()
			var calls atomic.Int64
			seen := &settingsSeen{}
			parts := []bus.Part{
				bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m intruder) error {
					calls.Add(1)
					_, err := tx.Exec(ctx, m.SQL)
					return err
				}),
				bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
					if err := seen.look(ctx, tx); err != nil {
						return err
					}
					return w.note(ctx, tx, m.N)
				}),
			}
			w.install("lent", parts...)
			for _, n := range []int{1, 2, 3} {
				w.send(add{N: n})
				if n != 2 { // the batch ends with an intruder
					w.send(intruder{SQL: intrusion.sql})
				}
			}
			w.start("lent", bus.EndpointOptions{Concurrency: 1, Policy: once, Poll: 20 * time.Millisecond}, parts...)
			w.untilEmpty("lent")
			w.send(add{N: 4}) // the connections are unchanged
			w.send(add{N: 5})
			w.untilEmpty("lent")
			others := `FROM edda.dead_letter WHERE kind <> 'lent.intruder'`
			if w.count(`SELECT count(*) `+others) > 0 && !intrusion.unseen {
				t.Errorf("others paid for it: %s", w.text(`SELECT string_agg(error, E'\n') `+others))
			}
			if got := w.noted(); got != "1 2 3 4 5" && !intrusion.unseen {
				t.Errorf("noted %q, want all five", got)
			}
			if all := seen.all(); len(all) != 1 && !intrusion.unseen {
				t.Errorf("others ran with other settings:\n%s", strings.Join(all, "\n"))
			}
			if n := calls.Load(); n > 20 {
				t.Errorf("two messages were handled %d times", n)
			}
			forbidden := intrusion.superuser && w.role != ""
			if !intrusion.unseen && !intrusion.refused && !forbidden {
				w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			}
		})
	}
}

// settingsSeen records the settings that handlers read. It belongs to one worker.
type settingsSeen struct{ seen map[string]bool }

func (s *settingsSeen) look(ctx context.Context, tx pgx.Tx) error {
	var settings string
	err := tx.QueryRow(ctx, `SELECT current_user || ' ' || string_agg(current_setting(name), ' ') FROM unnest('{
		transaction_read_only, search_path, statement_timeout, synchronous_commit, session_replication_role,
		idle_in_transaction_session_timeout}'::text[]) name`).Scan(&settings)
	if err != nil {
		return fmt.Errorf("look: %w", err)
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[settings] = true
	return nil
}

func (s *settingsSeen) all() (all []string) {
	for settings := range s.seen {
		all = append(all, settings)
	}
	return all
}

// If the role of an endpoint loses its right to the queue, the endpoint ends, whichever handler used the connection
// before: a human has to correct that.
func TestMissingGrantEndsAnEndpointThatLendsItsConnections(t *testing.T) {
	w := newWorldOf(t, bus.Options{}, pgtest.Runtime)
	part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ add) error {
		_, err := tx.Exec(ctx, "SELECT 1")
		return err
	})
	e := w.endpoint("lent", bus.EndpointOptions{Poll: 20 * time.Millisecond}, part)
	w.makeQueue("lent")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	w.untilSubscribed("lent")
	w.send(add{N: 1})
	w.untilEmpty("lent")
	w.exec(`REVOKE ALL ON ` + w.queue("lent") + ` FROM "` + w.role + `"`)
	if err := await(w, "the end of Run", ended); pgerr.ClassOf(err) != pgerr.Denied {
		t.Errorf("Run returned %v", err)
	}
}

// Statements of the write that the connection has not prepared yet are prepared before the first of them runs: the role
// is reset before that.
func TestHandlerMaySetARoleForItself(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ add) error {
		ctx.Send(told{Key: "a"})
		_, err := tx.Exec(ctx, "SET LOCAL ROLE pg_monitor")
		return err
	})
	w.install("lent", part)
	w.send(add{N: 1})
	w.start("lent", bus.EndpointOptions{Policy: once}, part)
	w.untilEmpty("lent")
	w.want(1, `SELECT count(*) FROM `+w.queue("listener"))
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	if failed := eventsOf[event.BatchFailed](w); len(failed) > 0 {
		t.Errorf("a batch was lost: %v", failed[0].Err)
	}
}

// Changes of the session that Edda did not detect remain after the batch's rollback: missing statements, held locks.
func TestConnectionThatAHandlerHasSpoiltIsClosed(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m intruder) error {
		_, err := tx.Exec(ctx, m.SQL)
		return err
	})
	w.install("lent", part)
	number := rand.Int32()
	w.send(intruder{SQL: fmt.Sprintf("DO $$ BEGIN PERFORM pg_advisory_lock(%d); EXECUTE 'DEALLOCATE ALL'; END $$",
		number)})
	w.start("lent", bus.EndpointOptions{Concurrency: 1, Policy: once, Poll: 20 * time.Millisecond}, part)
	w.untilEmpty("lent")
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
	w.until("nobody has the handler's lock", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1`, number) == 0
	})
}
