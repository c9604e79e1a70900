package snapshot

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// Holder keeps Postgres from removing dead rows. A [Pin] is the oldest one, with its effect on the schema.
type Holder struct {
	Kind         string        // as in a Pin, like all fields up to State
	Name         string        //
	Database     string        //
	Role         string        //
	Application  string        //
	State        string        //
	XID          string        // the oldest id in the snapshot: while it is the same, the snapshot is
	Catalogs     bool          // it keeps only rows of system catalogs, and no rows of a queue: a logical slot
	Transactions int64         // number of transactions that have begun since
	Held         time.Duration // since the transaction began; 0 if that is unknown, or the role may not read it
	Queried      time.Time     // when its last query began; zero if unknown
	Query        string        // the beginning of the query; "" if unknown
}

// Holders returns at most most holders, the oldest first and those of catalogs last, each with at most queryRunes
// characters of its query. It waits until ctx ends.
func (l *Look) Holders(ctx context.Context, db pg.Queryer, most, queryRunes int) ([]Holder, error) {
	rows, err := db.Query(ctx, l.sql.Get("holders"), pg.Planned, most, queryRunes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		var (
			held    *int64
			queried *time.Time
		)
		err = row.Scan(&h.Kind, &h.Name, &h.Database, &h.Role, &h.Application, &h.State, &h.XID, &h.Catalogs,
			&h.Transactions, &held, &queried, &h.Query)
		if held != nil {
			h.Held = max(time.Duration(*held)*time.Microsecond, 0)
		}
		if queried != nil {
			h.Queried = queried.UTC()
		}
		return h, err
	})
}
