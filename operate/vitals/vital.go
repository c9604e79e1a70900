package vitals

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Level says how a vital is.
type Level int

// The levels. A Watch gives an alarm when a vital turns Bad.
const (
	OK   Level = iota
	Warn       // it is not as it should be, and hurts little so far
	Bad        // it hurts the queues, or will soon
)

// String is "ok", "warn" or "bad".
func (l Level) String() string {
	return [...]string{"ok", "warn", "bad"}[min(max(l, OK), Bad)]
}

// The names of vitals. A report has at least one vital of each name, except WAL, which needs two looks, Hidden and
// DeadLetters.
const (
	Snapshot    = "snapshot"     // the oldest transaction or snapshot that keeps dead rows
	DeadRows    = "dead_rows"    // of a table that vacuum does not come to
	Autovacuum  = "autovacuum"   // whether it is off, for the server or for a table
	Connections = "connections"  // used, of those that are allowed
	WAL         = "wal"          // written in a second
	Slot        = "slot"         // what a replication slot keeps of the write-ahead log
	Freeze      = "freeze"       // the oldest transaction id
	Setting     = "setting"      // a setting that matters
	Visibility  = "visibility"   // whether the role sees what other roles' sessions do
	DeadLetters = "dead_letters" // a new group of dead letters; only in an Alarm
)

// Quantity is a number with its unit.
type Quantity struct {
	Number float64
	Unit   string // "s", "transactions", "rows", "%", "B", "B/s", "locks" or ""
}

// String is a text for people, such as "41m0s", "120,345 rows" or "1.2 GiB".
func (q Quantity) String() string {
	switch q.Unit {
	case "s":
		d := time.Duration(q.Number * float64(time.Second))
		if d < time.Second {
			return d.Round(time.Millisecond).String()
		}
		return d.Round(time.Second).String()
	case "B":
		return size(q.Number)
	case "B/s":
		return size(q.Number) + "/s"
	case "%":
		return strconv.FormatFloat(q.Number, 'f', 0, 64) + " %"
	}
	return strings.TrimSpace(number(int64(q.Number)) + " " + q.Unit)
}

// size is a number of bytes with three digits that count.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && n >= 1024 {
		n, units = n/1024, units[1:]
	}
	digits := 0
	if units[0] != "B" && n < 100 {
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " " + units[0]
}

// number is a whole number with commas.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Vital is one finding.
type Vital struct {
	Name    string // one of the constants, such as Snapshot
	Subject string // what it is of, such as "session 4711" or "queue orders"; "" for the server or the schema
	Level   Level
	Value   Quantity
	// Threshold is where the level begins, of a vital that is OK where Warn begins. Its unit is that of Value. The zero
	// Quantity is none.
	Threshold Quantity
	Sentence  string // what it means, with a full stop
	Do        string // what to do, "" if nothing; Edda never does it
}

// key tells vitals of one report apart.
func (v Vital) key() string { return v.Name + " " + v.Subject }

// Report is what one look found. Its lists have at most 20 entries, the worst ones, and Tables twice as many.
type Report struct {
	At      time.Time // by the database's clock
	Role    string    // that looked
	Visible bool      // the role sees what other roles' sessions do
	Vitals  []Vital   // the worst first
	Holders []Holder  // what keeps dead rows, the oldest first; those of catalogs last
	Tables  []Table   // of the schema, those with most dead rows first, and those without autovacuum
	Clients []Client  // the connections by application, most first
	Slots   []KeptWAL // the replication slots that keep most
	Server  Server
}

// Worst is the level of the worst vital of these names, of all without a name. It is OK if there is none.
func (r Report) Worst(names ...string) (worst Level) {
	for _, v := range r.Vitals {
		if len(names) == 0 || slices.Contains(names, v.Name) {
			worst = max(worst, v.Level)
		}
	}
	return worst
}

// Holder is what keeps Postgres from removing dead rows: a session with a transaction, a prepared transaction, a
// replication slot, or a standby that reports its queries (hot_standby_feedback).
type Holder struct {
	Kind         string // "session", "prepared transaction", "replication slot" or "standby"
	Name         string // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string // "" of a slot or a standby, which keep the rows of all databases
	Role         string // "" of a slot
	Application  string // the application_name of a session or a standby
	State        string // of a session or a slot; "" when the asking role may not see it
	Catalogs     bool   // it keeps rows of system catalogs alone, and none of a queue: a logical slot
	Transactions int64  // how many have begun since
	// Held is the time since the transaction began; 0 where it is not known, or the asking role may not see it.
	Held time.Duration
	// Watched is how long this Reader has seen it with the same snapshot, 0 at the first look.
	Watched time.Duration
	Queried time.Time // when its last query began; zero where that is not known
	Query   string    // the first 200 characters of it, as they are; "" where it is not known

	snapshot string // the oldest id in it: while it is the same, the snapshot is
}

// Table is a table of the schema.
type Table struct {
	Name       string
	Endpoint   string // whose queue it is, or ""
	Live, Dead int64  // rows, as Postgres' statistics estimate them
	Vacuumed   time.Time
	Off        bool // autovacuum is off for it
}

// Title is what a person calls the table: "queue orders", or "table saga".
func (t Table) Title() string {
	if t.Endpoint != "" {
		return "queue " + t.Endpoint
	}
	return "table " + t.Name
}

// Client is the programs with one application_name.
type Client struct {
	Application string
	Connections int64
}

// KeptWAL is a replication slot, and how much of the write-ahead log it keeps.
type KeptWAL struct {
	Slot   string
	Active bool
	Bytes  int64
}

// Server is what is read of the server as a whole.
type Server struct {
	Used, Allowed int64   // connections; Allowed is without those that are reserved
	WALPerSecond  float64 // bytes, between this look and the one before; -1 at the first
	Tables        int64   // of the schema
	FreezeRatio   float64 // the age of the oldest transaction id or multixact, by the age that autovacuum begins at
}

// sortVitals puts the worst first.
func sortVitals(all []Vital) {
	slices.SortStableFunc(all, func(a, b Vital) int { return cmp.Compare(b.Level, a.Level) })
}

// says is Sprintf with a large first letter.
func says(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return strings.ToUpper(text[:1]) + text[1:]
}

// quote is a text of others, on one line and printable.
func quote(text string) string { return strconv.Quote(text) }

func plain(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" {
		return name
	}
	return quote(name)
}
