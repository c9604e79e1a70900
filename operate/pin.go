package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/pin"
)

const (
	// PinFor is how long a transaction or a snapshot keeps dead rows before a log warns of it.
	PinFor = pin.Long
	// PinDeadRows is how many dead rows a table of the schema must have for that to matter.
	PinDeadRows = pin.DeadRows
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
	Held         time.Duration // since the transaction began; 0 where it is not known, or the role may not see it
	Transactions int64         // how many have begun since
	Table        string        // of the schema: the one with most dead rows
	Endpoint     string        // whose queue that is, or ""
	DeadRows     int64         // of the table, as Postgres' statistics estimate them
	XID          string        // two pins with one name and one XID are the same
	Asker        string        // the role that asked
}

// Pin finds what keeps dead rows from being removed, and reports whether the tables of the schema suffer from it:
// whether one of them has 10,000 dead rows. It may be a transaction that ends in a moment: see Pin.Old. It reads
// catalog views alone, locks nothing, and needs no right beyond SELECT on the schema's tables; a role that has
// pg_read_all_stats learns more.
func (q Queues) Pin(ctx context.Context) (p Pin, suffers bool, err error) {
	found, suffers, err := q.o.pins.Find(ctx, q.o.pool)
	return Pin(found), suffers, err
}

// Old reports whether the pin has been held for a minute, as far as one look can tell: where the time is not known, it
// asks whether a thousand transactions have begun since.
func (p Pin) Old() bool { return pin.Pin(p).Old() }

// Holder says what the pin is, as far as the asking role may see it.
func (p Pin) Holder() string { return pin.Pin(p).Holder() }

// Remedy says what ends the pin.
func (p Pin) Remedy() string { return pin.Pin(p).Remedy() }
