package pin

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

//go:embed pin.sql
var statements string

const (
	// Long is how long a transaction or a snapshot keeps dead rows before it is named. Processes and pages look every
	// few seconds, and Postgres' statistics are some seconds old: with a Long of 20 s the warning comes within 30 s. No
	// transaction of Edda's own lasts so long, except that of a HandleTx handler whose StepTimeout allows it.
	Long = 20 * time.Second
	// DeadRows is how many dead rows a queue must have for that to matter. A take that walks over 2,000 dead messages
	// reads some 500 buffers in place of 5. A queue without a pin may have more between two vacuums; a take then skips
	// their index entries, which earlier takes have marked as dead.
	DeadRows = 2_000
	// OtherDeadRows is the same for a table that is no queue. Autovacuum comes to the table saga after 5,000.
	OtherDeadRows = 10_000

	manyTransactions = 1000 // stands for Long where the time is not known
	within           = 5 * time.Second
	endQuery         = "end the long query on the standby, or set hot_standby_feedback = off there"
	page             = "docs/operate/scaling.md#a-pinned-snapshot"
)

// Pin is the oldest of what keeps Postgres from removing dead rows: a session with a transaction, a prepared
// transaction, a replication slot, or a standby that reports its queries (hot_standby_feedback). Takes walk over dead
// messages until it has ended.
type Pin struct {
	Kind         string        // "session", "prepared transaction", "replication slot" or "standby"
	Name         string        // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string        // "" of a slot or a standby, which keep the rows of all databases
	Role         string        // "" of a slot
	Application  string        // the application_name of a session or a standby
	State        string        // of a session or a slot; "" when the asking role may not see it
	Held         time.Duration // since the transaction began; 0 where the asking role may not see it
	Transactions int64         // how many have begun since
	Table        string        // of the schema: the one with most dead rows
	Endpoint     string        // whose queue that is, or ""
	DeadRows     int64         // of the table, as Postgres' statistics estimate them
	XID          string        // two pins with one name and one XID are the same
	Asker        string        // the role that asked
}

// Look has the statements of one schema. Safe for concurrent use.
type Look struct{ sql pg.Statements }

// New returns a look at a schema.
func New(schema pg.Schema) *Look { return &Look{pg.Load(statements, schema)} }

// Find finds what keeps dead rows from being removed, if a table of the schema suffers from it: if a queue has
// DeadRows, or another table OtherDeadRows. The Pin has no Kind if no table does, or if nothing keeps the rows. It may
// be a transaction that ends in a moment: see Pin.Old. Find reads catalog views alone, locks nothing, and needs no
// right beyond SELECT on the schema's tables; a role that has pg_read_all_stats learns more.
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
	if err != nil || len(holders) == 0 || holders[0].Catalogs { // those of catalogs come last
		return p, err
	}
	h := holders[0]
	p.Kind, p.Name, p.Database, p.Role, p.Application = h.Kind, h.Name, h.Database, h.Role, h.Application
	p.State, p.Held, p.Transactions, p.XID = h.State, h.Held, h.Transactions, h.XID
	return p, nil
}

// Old reports whether the pin has been held for Long, as far as one look can tell: where the time is not known, it
// asks whether a thousand transactions have begun since.
func (p Pin) Old() bool { return p.Held >= Long || p.Held == 0 && p.Transactions >= manyTransactions }

// Holder says what the pin is, as far as the asking role may see it.
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

// Remedy says what ends the pin.
func (p Pin) Remedy() string {
	var do string
	switch p.Kind {
	case "prepared transaction":
		do = fmt.Sprintf("in database %q, if no coordinator will end it: ROLLBACK PREPARED %s",
			p.Database, pg.Literal(p.Name))
	case "replication slot":
		do = fmt.Sprintf("if nobody needs the slot: SELECT pg_drop_replication_slot(%s); else %s",
			pg.Literal(p.Name), endQuery)
	case "standby":
		do = endQuery
	default:
		do = "SELECT pg_terminate_backend(" + p.Name + "); " +
			"idle_in_transaction_session_timeout ends such sessions by itself"
		if p.State == "" {
			role := pgx.Identifier{p.Asker}.Sanitize()
			do += fmt.Sprintf("; GRANT pg_read_all_stats TO %s shows what it does and since when", role)
		}
	}
	return do + "; see " + page
}
