package snapshot

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

//go:embed snapshot.sql
var statements string

const (
	// Long is how long a transaction or a snapshot keeps dead rows before it is reported. Processes and pages check
	// every few seconds, and Postgres' statistics are some seconds old: with a Long of 20 s the warning comes within
	// 30 s. No transaction of Edda's own lasts this long, except that of a HandleTx handler whose StepTimeout allows
	// it.
	Long = 20 * time.Second
	// DeadRows is how many dead rows a queue must have before a pin matters. A take that walks over 2,000 dead
	// messages reads about 500 buffers in place of 5. A queue without a pin may have more between two vacuums; a take
	// then skips their index entries, which earlier takes have marked as dead.
	DeadRows = 2_000
	// OtherDeadRows is the same for a table that is no queue. Autovacuum vacuums the table saga after 5,000.
	OtherDeadRows = 10_000

	manyTransactions = 1000 // replaces Long if the time is unknown
	within           = 5 * time.Second
	endQuery         = "end the long query on the standby, or set hot_standby_feedback = off there"
	page             = "docs/operate/scaling.md#a-pinned-snapshot"
)

// Pin is the oldest holder that keeps Postgres from removing dead rows: a session with a transaction, a prepared
// transaction, a replication slot, or a standby that reports its queries (hot_standby_feedback). Takes walk over dead
// messages until it has ended.
type Pin struct {
	Kind         string        // "session", "prepared transaction", "replication slot" or "standby"
	Name         string        // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string        // "" of a slot or a standby, which keep the rows of all databases
	Role         string        // "" of a slot
	Application  string        // the application_name of a session or a standby
	State        string        // of a session or a slot; "" if the connected role may not read it
	Held         time.Duration // since the transaction began; 0 if the connected role may not read it
	Transactions int64         // number of transactions that have begun since
	Table        string        // the table of the schema with most dead rows
	Endpoint     string        // the endpoint of that queue, or ""
	DeadRows     int64         // dead rows of the table, by Postgres' estimate
	XID          string        // two pins with the same name and the same XID are the same
	Asker        string        // the connected role
}

// Look has the statements of one schema. Safe for concurrent use.
type Look struct{ sql pg.Statements }

// New returns a Look for a schema.
func New(schema pg.Schema) *Look { return &Look{pg.Load(statements, schema)} }

// Find finds the holder that keeps dead rows from being removed, if a table of the schema has many of them: a queue
// DeadRows, or any other table OtherDeadRows. The Pin has no Kind if no table has, or if nothing keeps the rows. It
// may be a transaction that ends in a moment: see Pin.Old. Find reads only catalog views, locks nothing, and needs no
// right beyond SELECT on the schema's tables; with pg_read_all_stats it finds more details.
func (l *Look) Find(ctx context.Context, db pg.Queryer) (p Pin, suffers bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if p, err = l.find(ctx, db); err != nil {
		return Pin{}, false, fmt.Errorf("look for a pinned snapshot: %w", pgerr.Explain(err))
	}
	return p, p.Kind != "", nil
}

func (l *Look) find(ctx context.Context, db pg.Queryer) (p Pin, err error) {
	rows, err := db.Query(ctx, l.sql.Get("most_dead"), pg.Planned, DeadRows, OtherDeadRows)
	if err != nil {
		return Pin{}, err
	}
	suffers, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (suffers bool, err error) {
		return suffers, row.Scan(&p.Endpoint, &p.Table, &p.DeadRows, &p.Asker, &suffers)
	})
	if err != nil || !suffers {
		return p, err // the search for holders costs more
	}
	holders, err := l.Holders(ctx, db, 1, 0)
	if err != nil || len(holders) == 0 || holders[0].Catalogs { // holders of catalogs come last
		return p, err
	}
	h := holders[0]
	p.Kind, p.Name, p.Database, p.Role, p.Application = h.Kind, h.Name, h.Database, h.Role, h.Application
	p.State, p.Held, p.Transactions, p.XID = h.State, h.Held, h.Transactions, h.XID
	return p, nil
}

// Old reports whether the pin has been held for Long. If the time is unknown, it reports whether a thousand
// transactions have begun since.
func (p Pin) Old() bool { return p.Held >= Long || p.Held == 0 && p.Transactions >= manyTransactions }

// Holder describes the pin, as far as the connected role may read it.
func (p Pin) Holder() string {
	var details []string
	add := func(format, value string) {
		if value != "" {
			details = append(details, fmt.Sprintf(format, value))
		}
	}
	add("application %q", p.Application)
	add("role %q", p.Role)
	add("database %q", p.Database)
	add("%s", p.State)
	name := p.Name
	if p.Kind == "prepared transaction" {
		name = fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%s %s (%s)", p.Kind, name, strings.Join(details, ", "))
}

// Remedy returns the action that ends the pin.
func (p Pin) Remedy() string {
	var do string
	switch p.Kind {
	case "prepared transaction":
		do = fmt.Sprintf("in database %q, if no coordinator will end it: ROLLBACK PREPARED %s",
			p.Database, pg.Literal(p.Name))
	case "replication slot":
		do = fmt.Sprintf("if no reader needs the slot: SELECT pg_drop_replication_slot(%s); else %s",
			pg.Literal(p.Name), endQuery)
	case "standby":
		do = endQuery
	default:
		do = "SELECT pg_terminate_backend(" + p.Name + "); " +
			"idle_in_transaction_session_timeout ends such sessions by itself"
		if p.State == "" {
			role := pgx.Identifier{p.Asker}.Sanitize()
			do += fmt.Sprintf("; after GRANT pg_read_all_stats TO %s this text has its state and age", role)
		}
	}
	return do + "; see " + page
}
