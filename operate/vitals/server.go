package vitals

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// connections judges how many connections are left.
func (f *facts) connections(limits Thresholds) []Vital {
	s := f.report.Server
	v := Vital{Name: Connections, Value: Quantity{100 * float64(s.Used) / float64(max(s.Allowed, 1)), "%"}}
	v.Level, v.Threshold = limits.Connections.judge(v.Value.Number, v.Value.Unit)
	v.Sentence = says("%s of %s connections are in use%s.", number(s.Used), number(s.Allowed), f.clients())
	if v.Level > OK {
		v.Sentence += " Without a free connection no process can start, or come back after an outage."
		v.Do = "Lower pool_max_conns of the programs that have most, or Concurrency of their endpoints; put a " +
			"PgBouncer before them (docs/operate/pgbouncer.md); or raise max_connections, which needs a restart."
	}
	return []Vital{v}
}

// clients names the three applications with the most connections.
func (f *facts) clients() string {
	var all []string
	for _, c := range f.report.Clients[:min(len(f.report.Clients), 3)] {
		all = append(all, number(c.Connections)+" by "+quote(c.Application))
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// log judges how fast the write-ahead log grows. It returns nothing for the first Read of a Reader.
func (f *facts) log(limits Thresholds) []Vital {
	rate := f.report.Server.WALPerSecond
	if rate < 0 {
		return nil
	}
	v := Vital{Name: WAL, Value: Quantity{rate, "B/s"}}
	v.Level, v.Threshold = limits.WALPerSecond.judge(rate, v.Value.Unit)
	v.Sentence = says("%s of write-ahead log were written in a second, by all databases of the server together.",
		size(rate))
	if v.Level > OK {
		v.Do = "Compare with the speed of the disk and the replicas. Find the writer (pg_stat_statements has " +
			"wal_bytes); " +
			"keep less history (edda history set), and smaller states."
	}
	return []Vital{v}
}

// slots judges how much write-ahead log replication slots keep: it may fill the disk.
func (f *facts) slots(limits Thresholds) (vitals []Vital) {
	for n, s := range f.report.Slots {
		v := Vital{Name: Slot, Subject: "slot " + plain(s.Slot), Value: Quantity{float64(max(s.Bytes, 0)), "B"}}
		v.Level, v.Threshold = limits.SlotBytes.judge(v.Value.Number, v.Value.Unit)
		if v.Level == OK && n > 0 {
			continue
		}
		state := "no reader is connected"
		if s.Active {
			state = "its reader is connected"
		}
		v.Sentence = says("replication slot %s keeps %s of the write-ahead log, and %s.", plain(s.Slot), v.Value, state)
		if v.Level > OK {
			v.Sentence += " When the disk is full, the server stops."
			v.Do = "Start its reader; if no reader needs the slot: SELECT pg_drop_replication_slot(" +
				pg.Literal(s.Slot) + "); max_slot_wal_keep_size limits the log that slots keep."
		}
		vitals = append(vitals, v)
	}
	if len(vitals) == 0 {
		vitals = []Vital{{Name: Slot, Value: Quantity{0, "B"}, Sentence: "No replication slot keeps write-ahead log."}}
	}
	return vitals
}

// lastXID is the age of a database in danger, whatever the value of autovacuum_freeze_max_age: the server refuses to
// write at about 2,140 million.
const lastXID = 1_500_000_000

// freeze judges the age of the oldest transaction id.
func (f *facts) freeze(limits Thresholds) []Vital {
	oldest, what, setting := f.xids, "transaction id", "autovacuum_freeze_max_age"
	if f.multis.ratio() > f.xids.ratio() {
		oldest, what, setting = f.multis, "multixact", "autovacuum_multixact_freeze_max_age"
	}
	v := Vital{Name: Freeze, Value: Quantity{100 * oldest.ratio(), "%"}}
	v.Level, v.Threshold = limits.Freeze.judge(v.Value.Number, v.Value.Unit)
	if max(f.xids.now, f.multis.now) >= lastXID {
		v.Level = Bad
	}
	v.Sentence = says("the oldest %s of database %s is %s old, %s of %s.", what, quote(oldest.database),
		number(oldest.now), v.Value, setting)
	if v.Level > OK {
		v.Sentence += " Autovacuum should have frozen its rows, and does not finish; at some 2,140 " +
			"millions the server refuses to write."
		v.Do = "End old transactions, prepared transactions and unused slots first; then run VACUUM (FREEZE) in " +
			"database " + quote(oldest.database) + "."
	}
	return []Vital{v}
}

// The judged settings, in the order of the report.
const (
	autovacuum      = "autovacuum"
	commitTimestamp = "track_commit_timestamp"
	idleTimeout     = "idle_in_transaction_session_timeout"
	locks           = "max_locks_per_transaction"
	statement       = "statement_timeout"
	synchronous     = "synchronous_commit"
	maxConnections  = "max_connections"
	maxPrepared     = "max_prepared_transactions"
)

var settingNames = []string{autovacuum, commitTimestamp, idleTimeout, locks, statement, synchronous, maxConnections,
	maxPrepared}

func (f *facts) scanSetting(row pgx.CollectableRow) error {
	var name, value, unit string
	err := row.Scan(&name, &value, &unit)
	f.settings[name] = value
	return err
}

func (f *facts) setting(name string) float64 {
	n, _ := strconv.ParseFloat(f.settings[name], 64) // Postgres returns numbers
	return n
}

// leastStatement is the minimum that docs/operate/roles.md requires, in milliseconds.
const leastStatement = 10_000

// settingVitals judges settings: one vital for each that differs from the docs' advice, or one for all.
func (f *facts) settingVitals() (vitals []Vital) {
	add := func(name, sentence, do string) {
		vitals = append(vitals, Vital{Name: Setting, Subject: name, Level: Warn, Sentence: sentence, Do: do})
	}
	role := pgx.Identifier{f.report.Role}.Sanitize()
	if f.settings[synchronous] == "off" {
		add(synchronous, "Synchronous_commit is off for the role "+quote(f.report.Role)+": a crash of the server "+
			"loses the last messages that were sent and handled, after their senders got the confirmation.",
			"ALTER ROLE "+role+" RESET synchronous_commit, unless you can lose them.")
	}
	if f.setting(idleTimeout) == 0 {
		add(idleTimeout,
			"No idle_in_transaction_session_timeout is set for the role "+quote(f.report.Role)+": a session that "+
				"does not end its transaction keeps dead rows until a person ends it. Workers of Edda set it for "+
				"themselves, except behind a pooler; people and reports do not.",
			"ALTER DATABASE "+pgx.Identifier{f.database}.Sanitize()+" SET idle_in_transaction_session_timeout = "+
				"'1min'; docs/operate/scaling.md explains it.")
	}
	if ms := f.setting(statement); ms > 0 && ms < leastStatement {
		add(statement, fmt.Sprintf("The statement_timeout of the role %s is %s: a batch whose write takes longer is "+
			"rolled back, and its messages are taken again in smaller batches.", quote(f.report.Role),
			Quantity{ms / 1000, "s"}), "ALTER ROLE "+role+" SET statement_timeout = '10s' or more; see "+
			"docs/operate/roles.md.")
	}
	if f.settings[commitTimestamp] == "on" {
		add(commitTimestamp, "Track_commit_timestamp is on: each commit writes a time that Edda does not read.",
			"ALTER SYSTEM SET track_commit_timestamp = off, and restart, unless a program of yours reads it.")
	}
	if room := f.setting(locks) * (f.setting(maxConnections) + f.setting(maxPrepared)); room < float64(f.locked) {
		add(locks, fmt.Sprintf("The server has room for %s locks, and the schema has %s tables and indexes: a "+
			"pg_dump, or a DROP SCHEMA, locks each of them and fails with \"out of shared memory\".",
			number(int64(room)), number(f.locked)), "ALTER SYSTEM SET max_locks_per_transaction = "+
			strconv.FormatInt(f.locked/max(int64(f.setting(maxConnections)), 1)+64, 10)+", and restart.")
	}
	if len(vitals) == 0 {
		vitals = []Vital{{Name: Setting, Sentence: "The checked settings are as Edda's pages advise."}}
	}
	return vitals
}
