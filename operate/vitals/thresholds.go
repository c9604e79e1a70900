package vitals

import (
	"fmt"
	"math"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/snapshot"
)

// The default thresholds.
const (
	SnapshotWarn     = snapshot.Long    // age of a transaction that warns
	SnapshotBad      = 10 * time.Minute // and that is bad if a table has DeadRowsWarn dead rows
	TransactionsWarn = 10_000           // the same if the time is unknown: transactions that have begun since
	TransactionsBad  = 1_000_000
	DeadRowsWarn     = 10_000 // dead rows of a table that was not vacuumed within VacuumedWithin
	DeadRowsBad      = 100_000
	VacuumedWithin   = 10 * time.Minute
	ConnectionsWarn  = 80        // percent of the allowed connections
	ConnectionsBad   = 95        //
	WALWarn          = 100 << 20 // bytes per second of the write-ahead log; no rate is bad
	SlotWarn         = 1 << 30   // bytes of the write-ahead log that a slot keeps
	SlotBad          = 10 << 30
	FreezeWarn       = 110 // percent of autovacuum_freeze_max_age, or of its equivalent for multixacts
	FreezeBad        = 200
)

// Bound has the lower limits of Warn and Bad. Zero is the default, and a negative number is a limit that is never
// reached.
type Bound struct{ Warn, Bad float64 }

// never is a Bound that no number reaches.
var never = Bound{math.Inf(1), math.Inf(1)}

// Thresholds are the bounds of vitals. Every zero is a default.
type Thresholds struct {
	SnapshotSeconds Bound // SnapshotWarn, SnapshotBad
	Transactions    Bound // TransactionsWarn, TransactionsBad
	DeadRows        Bound // DeadRowsWarn, DeadRowsBad
	// VacuumedWithin: a table that was vacuumed within this time is OK, however many dead rows it has. 1 min to 1 year.
	VacuumedWithin time.Duration
	Connections    Bound // percent: ConnectionsWarn, ConnectionsBad
	WALPerSecond   Bound // bytes: WALWarn, never
	SlotBytes      Bound // SlotWarn, SlotBad
	Freeze         Bound // percent: FreezeWarn, FreezeBad
}

func (t *Thresholds) complete() error {
	var faults option.Faults
	for _, b := range []struct {
		name     string
		bound    *Bound
		standard Bound
	}{
		{"SnapshotSeconds", &t.SnapshotSeconds, Bound{SnapshotWarn.Seconds(), SnapshotBad.Seconds()}},
		{"Transactions", &t.Transactions, Bound{TransactionsWarn, TransactionsBad}},
		{"DeadRows", &t.DeadRows, Bound{DeadRowsWarn, DeadRowsBad}},
		{"Connections", &t.Connections, Bound{ConnectionsWarn, ConnectionsBad}},
		{"WALPerSecond", &t.WALPerSecond, Bound{WALWarn, -1}},
		{"SlotBytes", &t.SlotBytes, Bound{SlotWarn, SlotBad}},
		{"Freeze", &t.Freeze, Bound{FreezeWarn, FreezeBad}},
	} {
		faults.Add(b.bound.complete(b.name, b.standard))
	}
	faults.Duration("VacuumedWithin", &t.VacuumedWithin, VacuumedWithin, time.Minute, 365*24*time.Hour)
	return faults.Err()
}

func (b *Bound) complete(name string, standard Bound) error {
	for n, standard := range map[*float64]float64{&b.Warn: standard.Warn, &b.Bad: standard.Bad} {
		if option.Default(n, standard); *n < 0 {
			*n = math.Inf(1)
		}
	}
	if !(b.Warn <= b.Bad) { // NaN included
		return fmt.Errorf("%s warns at %v and is bad at %v: want Warn to be at most Bad (0 is the default, %v and %v)",
			name, b.Warn, b.Bad, standard.Warn, standard.Bad)
	}
	return nil
}

// judge returns the level of a number and the value where that level begins; for an OK number, Warn.
func (b Bound) judge(n float64, unit string) (Level, Quantity) {
	level, begins := OK, b.Warn
	switch {
	case n >= b.Bad:
		level, begins = Bad, b.Bad
	case n >= b.Warn:
		level = Warn
	}
	if math.IsInf(begins, 1) {
		return level, Quantity{}
	}
	return level, Quantity{begins, unit}
}
