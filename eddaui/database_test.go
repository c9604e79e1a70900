package eddaui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The vitals of a server depend on everything that runs on it, so these pages show fixed reports.
func TestDatabasePages(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]vitals.Report{"quiet": quiet(), "troubled": troubled()} {
		for _, queries := range []bool{true, false} {
			body, err := eddaui.DatabasePage(r, queries)
			if err != nil {
				t.Fatal(err)
			}
			part := ""
			if !queries {
				name, part = name+"-hidden", "#holders"
				if strings.Contains(body, "customers") {
					t.Errorf("%s shows a query to somebody who may not see bodies", name)
				}
			}
			golden(t, "database/"+name, partOf(t, part, body))
		}
	}
}

var look = time.Date(2026, 11, 26, 14, 2, 0, 0, time.UTC)

func quiet() vitals.Report {
	return vitals.Report{
		At: look, Role: "edda", Visible: true,
		Vitals: []vitals.Vital{
			{Name: vitals.Snapshot, Value: vitals.Quantity{Unit: "s"}, Sentence: "No transaction keeps dead rows.",
				Threshold: vitals.Quantity{Number: 60, Unit: "s"}},
			{Name: vitals.Setting, Sentence: "The checked settings are as Edda's pages advise."},
		},
		Tables: []vitals.Table{{Name: "queue_1", Endpoint: "orders", Live: 40, Dead: 12}},
		Server: vitals.Server{Used: 9, Allowed: 97, WALPerSecond: -1, Tables: 63},
	}
}

func troubled() vitals.Report {
	return vitals.Report{
		At: look, Role: "edda_reader", Visible: true,
		Vitals: []vitals.Vital{
			{Name: vitals.Snapshot, Subject: "session 4711", Level: vitals.Bad,
				Value: vitals.Quantity{Number: 2460, Unit: "s"}, Threshold: vitals.Quantity{Number: 600, Unit: "s"},
				Sentence: "Session 4711 has held a snapshot for 41m0s: vacuum cannot remove the rows that were " +
					"handled since, and each take reads over them. Most dead rows are in queue orders: 1,204,000.",
				Do: "SELECT pg_terminate_backend(4711); see docs/operate/scaling.md#a-pinned-snapshot."},
			{Name: vitals.WAL, Value: vitals.Quantity{Number: 3 << 20, Unit: "B/s"}, Sentence: "3.0 MiB/s of " +
				"write-ahead log were written in a second, by all databases of the server together.",
				Threshold: vitals.Quantity{Number: 100 << 20, Unit: "B/s"}},
			{Name: vitals.Freeze, Value: vitals.Quantity{Number: 41, Unit: "%"}, Sentence: "The oldest " +
				"transaction id of database \"shop\" is 82,000,000 old, 41 % of autovacuum_freeze_max_age."},
		},
		Holders: []vitals.Holder{
			{Kind: "session", Name: "4711", Database: "shop", Role: "report", Application: "pg_dump<script>",
				State: "idle in transaction", Transactions: 120_345, Held: 41 * time.Minute,
				Queried: look.Add(-40 * time.Minute), Query: "SELECT * FROM customers"},
			{Kind: "session", Name: "4712", State: "active", Transactions: 3, Held: time.Second},
			{Kind: "standby", Name: "4713", Role: "replica", Transactions: 9},
			{Kind: "replication slot", Name: "changes", State: "inactive", Catalogs: true, Transactions: 1_000},
		},
		Tables: []vitals.Table{
			{Name: "queue_1", Endpoint: "orders", Live: 40, Dead: 1_204_000, Vacuumed: look.Add(-50 * time.Minute)},
			{Name: "saga", Live: 10_000, Off: true},
		},
		Clients: []vitals.Client{{Application: "shop", Connections: 60}, {Connections: 12}},
		Slots:   []vitals.KeptWAL{{Slot: "changes", Bytes: 3 << 30}, {Slot: "away", Active: true, Bytes: 8 << 20}},
		Server:  vitals.Server{Used: 72, Allowed: 97, WALPerSecond: 3 << 20, Tables: 63, FreezeRatio: .41},
	}
}

// The page of a server with a forgotten transaction names the session, and the statement that ends it; the page does
// not run it.
func TestDatabasePageNamesWhoHolds(t *testing.T) {
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool, err := pgxpool.New(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	pgtest.Migrate(t, pool, "edda")
	forgot, err := pgx.Connect(t.Context(), server.DSN()+"&application_name=forgot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = forgot.Close(t.Context()) })
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 'of a customer'"} {
		if _, err := forgot.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	session := fmt.Sprintf("session %d", forgot.PgConn().PID())
	for may, sees := range map[eddaui.Permission]bool{eddaui.View: false, eddaui.View | eddaui.Bodies: true} {
		s := serve(t, pool, "edda", eddaui.Options{Authorize: allow(may)})
		body, text := s.get("/database"), s.get("/database.json")
		for _, want := range []string{session, "application forgot", "idle in transaction"} {
			if !strings.Contains(body, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		if strings.Contains(body, "of a customer") != sees || strings.Contains(text, "of a customer") != sees {
			t.Errorf("with the rights %b the query is shown: %v, want %v", may, !sees, sees)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &got); err != nil || got["holders"] == nil || got["tables"] == nil ||
			got["connections_used"] == nil {
			t.Errorf("the JSON has not what the command prints: %v, %.300s", err, text)
		}
		if !strings.Contains(s.get("/database"), "write-ahead log were written in a second") {
			t.Error("the second look does not say how much log is written")
		}
		if a := s.do(http.MethodPost, "/database"); a.status != http.StatusForbidden {
			t.Errorf("a POST is %d", a.status)
		}
	}
	if _, err := forgot.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("looking has ended the session: %v", err)
	}
}
