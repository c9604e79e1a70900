package pin

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// Holder is what keeps Postgres from removing dead rows. A [Pin] is the oldest one, with what it does to the schema.
type Holder struct {
	Kind         string        // as that of a Pin, as are all fields up to State
	Name         string        //
	Database     string        //
	Role         string        //
	Application  string        //
	State        string        //
	XID          string        // the oldest id in the snapshot: while it is the same, the snapshot is
	Catalogs     bool          // it keeps rows of system catalogs alone, and none of a queue: a logical slot
	Transactions int64         // how many have begun since
	Held         time.Duration // since the transaction began; 0 where it is not known, or the role may not see it
	Queried      time.Time     // when its last query began; zero where that is not known
	Query        string        // the beginning of it; "" where it is not known
}

// Holders returns at most so many holders, the oldest first and those of catalogs last, with as many characters of
// their queries. It waits as long as ctx.
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
