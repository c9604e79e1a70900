package browser

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// soon is the time within which the pages promise to name a snapshot, from when it begins to slow takes.
const soon = 30 * time.Second

// A snapshot that keeps the dead rows of a queue is named on the first page and on the page of the database, which
// are open all the time: within 30 seconds after the dead rows of the queue have made takes slow, although the
// snapshot was not old then.
func TestSnapshotsAreNamedSoon(t *testing.T) {
	server, err := pgdev.Start(t.Context(), pgdev.Options{
		Private: true, Log: io.Discard, Settings: map[string]string{"max_prepared_transactions": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		name string
		hold func(t *testing.T, conn *pgx.Conn) (holder, end string)
	}{
		{"a session that is idle in transaction", func(_ *testing.T, conn *pgx.Conn) (string, string) {
			return "session " + strconv.Itoa(int(conn.PgConn().PID())), "ROLLBACK"
		}},
		{"a prepared transaction", func(t *testing.T, conn *pgx.Conn) (string, string) {
			execute(t, conn, "PREPARE TRANSACTION 'forgotten'")
			return `prepared transaction "?forgotten`, "ROLLBACK PREPARED 'forgotten'"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, pool := serveAlone(t, server)
			now, database := newVisitor(t, s, desk), newVisitor(t, s, desk)
			now.open("")
			database.open("database")
			for _, v := range []*visitor{now, database} {
				v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
			}
			conn, err := pgx.Connect(t.Context(), server.DSN())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
			execute(t, conn, "BEGIN")
			execute(t, conn, "SELECT pg_current_xact_id()")
			holder, end := c.hold(t, conn)
			begun := time.Now()
			for _, sql := range []string{
				`INSERT INTO edda.queue_1 (due, id, kind, header, body)
					SELECT now(), gen_random_uuid(), 'order.place', '{}', '{}' FROM generate_series(1, 2500)`,
				`DELETE FROM edda.queue_1`,
			} {
				if _, err := pool.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			hurts := time.Now()
			named := func(selector string) string {
				return fmt.Sprintf(`new RegExp(%q, "i").test(document.querySelector(%q).textContent)`, holder, selector)
			}
			for selector, v := range map[string]*visitor{"#sentences": now, "#findings": database} {
				v.within(2*soon, selector+" names it", named(selector))
				took := time.Since(hurts)
				t.Logf("%s named the %s %v after it began to hurt, %v after it began", selector, holder,
					took.Round(time.Second/10), time.Since(begun).Round(time.Second/10))
				if took > soon {
					t.Errorf("%s named it %v after it began to hurt, want %v", selector, took, soon)
				}
			}
			execute(t, conn, end)
			now.until("the first page takes it back", "!"+named("#sentences"))
		})
	}
}

// serveAlone serves the pages of a schema with one endpoint, which no process runs.
func serveAlone(t *testing.T, server *pgdev.Server) (*shop, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "DROP SCHEMA IF EXISTS edda CASCADE"); err != nil {
		t.Fatal(err)
	}
	op, err := operate.New(pool, operate.Options{})
	if err == nil {
		if err = migrations.Up(t.Context(), pool, migrations.Options{}); err == nil {
			err = op.Queues().Install(t.Context(), "orders", "order.place")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ui, err := eddaui.New(pool, eddaui.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
	site := httptest.NewServer(mux)
	t.Cleanup(func() {
		ui.Close()
		site.Close()
	})
	return &shop{t: t, url: site.URL + "/edda/"}, pool
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
