package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/snapshot"
)

const (
	// PinFor is the minimum age of an old pin.
	PinFor = snapshot.Long
	// PinDeadRows is the minimum number of dead rows of a queue for a pin. For other tables it is 10,000.
	PinDeadRows = snapshot.DeadRows
)

// Pin is the oldest holder of a snapshot that keeps Postgres from removing dead rows: a session with a transaction, a
// prepared transaction, a replication slot, or a standby that reports its queries (hot_standby_feedback). Until it
// ends, workers read past dead rows.
type Pin struct {
	Kind         string        // "session", "prepared transaction", "replication slot" or "standby"
	Name         string        // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string        // "" for a slot or a standby, which keep the rows of all databases
	Role         string        // "" for a slot
	Application  string        // the application_name of a session or a standby
	State        string        // of a session or a slot; "" if the role may not see it
	Held         time.Duration // since the transaction began; 0 if that is unknown, or the role may not see it
	Transactions int64         // number of transactions that have begun since then
	Table        string        // the table of the schema with the most dead rows
	Endpoint     string        // the endpoint whose queue the table is, or ""
	DeadRows     int64         // of the table, by the estimate of Postgres' statistics
	XID          string        // two pins with the same Name and XID are the same pin
	Asker        string        // the role of the session that ran the query
}

// Pin finds the holder that keeps dead rows, if a queue has PinDeadRows dead rows or another table 10,000, and reports
// whether it found one. The holder may be a transaction that ends soon: see Pin.Old. Pin reads only catalog views,
// locks nothing, and needs no right beyond SELECT on the schema's tables; a role with pg_read_all_stats sees more.
func (q Queues) Pin(ctx context.Context) (p Pin, suffers bool, err error) {
	found, suffers, err := q.o.pins.Find(ctx, q.o.pool)
	return Pin(found), suffers, err
}

// Old reports whether the pin has lasted for PinFor or longer. If its age is unknown, Old reports whether a thousand
// transactions have begun since.
func (p Pin) Old() bool { return snapshot.Pin(p).Old() }

// Holder describes the pin, as far as the role may see it.
func (p Pin) Holder() string { return snapshot.Pin(p).Holder() }

// Remedy describes how to end the pin.
func (p Pin) Remedy() string { return snapshot.Pin(p).Remedy() }
