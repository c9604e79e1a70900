package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/pin"
)

const (
	// PinFor is how long a transaction or a snapshot keeps dead rows before it is named.
	PinFor = pin.Long
	// PinDeadRows is the number of dead rows of a queue from which on a pin matters. Of another table it is 10,000.
	PinDeadRows = pin.DeadRows
)

// Pin is the oldest holder that keeps Postgres from removing dead rows: a session with a transaction, a prepared
// transaction, a replication slot, or a standby that reports its queries (hot_standby_feedback). Until it ends, workers
// read over dead messages.
type Pin struct {
	Kind         string        // "session", "prepared transaction", "replication slot" or "standby"
	Name         string        // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string        // "" of a slot or a standby, which keep the rows of all databases
	Role         string        // "" of a slot
	Application  string        // the application_name of a session or a standby
	State        string        // of a session or a slot; "" when the asking role may not see it
	Held         time.Duration // since the transaction began; 0 where it is not known, or the role may not see it
	Transactions int64         // transactions that have begun since
	Table        string        // the table of the schema with most dead rows
	Endpoint     string        // whose queue that is, or ""
	DeadRows     int64         // of the table, as Postgres' statistics estimate them
	XID          string        // two pins with one name and one XID are the same
	Asker        string        // the role that asked
}

// Pin finds the holder that keeps dead rows, if a queue has PinDeadRows of them or another table 10,000, and reports
// whether there is one. It may be a transaction that ends in a moment: see Pin.Old. Pin reads only catalog views, locks
// nothing, and needs no right beyond SELECT on the schema's tables; a role that has pg_read_all_stats sees more.
func (q Queues) Pin(ctx context.Context) (p Pin, suffers bool, err error) {
	found, suffers, err := q.o.pins.Find(ctx, q.o.pool)
	return Pin(found), suffers, err
}

// Old reports whether the pin has been held for PinFor. If its age is not known, Old reports whether a thousand
// transactions have begun since.
func (p Pin) Old() bool { return pin.Pin(p).Old() }

// Holder says what the pin is, as far as the asking role may see it.
func (p Pin) Holder() string { return pin.Pin(p).Holder() }

// Remedy says what ends the pin.
func (p Pin) Remedy() string { return pin.Pin(p).Remedy() }
