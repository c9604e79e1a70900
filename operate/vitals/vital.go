package vitals

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Level is how bad a vital is.
type Level int

// The levels. A Watch raises an alarm when a vital turns Bad.
const (
	OK   Level = iota
	Warn       // it deviates, and does little harm so far
	Bad        // it harms the queues, or soon will
)

// String returns "ok", "warn" or "bad".
func (l Level) String() string {
	return [...]string{"ok", "warn", "bad"}[min(max(l, OK), Bad)]
}

// The names of vitals. A report has at least one of each name, except WAL, which needs two Reads, and DeadLetters.
const (
	Snapshot    = "snapshot"     // the oldest transaction or snapshot that keeps dead rows
	DeadRows    = "dead_rows"    // of a table that vacuum does not reach
	Autovacuum  = "autovacuum"   // whether it is off, for the server or for a table
	Connections = "connections"  // used, of the allowed connections
	WAL         = "wal"          // bytes per second of the write-ahead log
	Slot        = "slot"         // the write-ahead log that a replication slot keeps
	Freeze      = "freeze"       // the oldest transaction id
	Setting     = "setting"      // a setting that matters
	Visibility  = "visibility"   // whether the role can see the activity of other roles' sessions
	DeadLetters = "dead_letters" // a new group of dead letters; only in an Alarm
)

// Quantity is a number with its unit.
type Quantity struct {
	Number float64
	Unit   string // "s", "transactions", "rows", "%", "B", "B/s", "locks" or ""
}

// String returns a text for people, such as "41m0s", "120,345 rows" or "1.2 GiB".
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

// size formats a number of bytes with a unit and at most one decimal.
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

// number formats a whole number with commas.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Vital is one finding.
type Vital struct {
	Name    string // a constant such as Snapshot
	Subject string // such as "session 4711" or "queue orders"; "" for the server or the schema
	Level   Level
	Value   Quantity
	// Threshold is the value where the level begins, or for a vital that is OK, where Warn begins. Its unit is that
	// of Value. The zero Quantity means that there is no threshold.
	Threshold Quantity
	Sentence  string // a sentence that describes the finding, with a full stop
	Do        string // what a person can do, "" if nothing; Edda never does it
}

// key identifies a vital in a report.
func (v Vital) key() string { return v.Name + " " + v.Subject }

// Report is the result of one Read. Its lists have at most 20 entries, the worst ones; Tables has at most 40.
type Report struct {
	At      time.Time // by the database's clock
	Role    string    // the role that has read
	Visible bool      // the role can see the activity of other roles' sessions
	Vitals  []Vital   // the worst first
	Holders []Holder  // holders of dead rows, the oldest first; holders of catalog rows last
	Tables  []Table   // of the schema: those with the most dead rows first, and those without autovacuum
	Clients []Client  // connections by application, the most first
	Slots   []KeptWAL // the replication slots that keep the most
	Server  Server
}

// Worst returns the worst level among vitals of these names, or among all vitals without a name. It is OK for no vital.
func (r Report) Worst(names ...string) (worst Level) {
	for _, v := range r.Vitals {
		if len(names) == 0 || slices.Contains(names, v.Name) {
			worst = max(worst, v.Level)
		}
	}
	return worst
}

// Holder keeps Postgres from removing dead rows. It is a session with a transaction, a prepared transaction, a
// replication slot, or a standby that reports its queries (hot_standby_feedback).
type Holder struct {
	Kind         string // "session", "prepared transaction", "replication slot" or "standby"
	Name         string // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string // "" for a slot or a standby, which keep the rows of all databases
	Role         string // "" for a slot
	Application  string // the application_name of a session or a standby
	State        string // of a session or a slot; "" if the role may not see it
	Catalogs     bool   // it keeps only rows of system catalogs, and no row of a queue: a logical slot
	Transactions int64  // number of transactions that have begun since then
	// Held is the time since the transaction began; 0 if it is unknown, or the role may not see it.
	Held time.Duration
	// Watched is how long this Reader has observed it with the same snapshot, 0 at the first Read.
	Watched time.Duration
	Queried time.Time // start of its last query; zero if unknown
	Query   string    // the first 200 characters of that query, unchanged; "" if unknown

	snapshot string // the oldest id in the snapshot: as long as it is the same, the snapshot is the same
}

// Table is a table of the schema.
type Table struct {
	Name       string
	Endpoint   string // the endpoint whose queue it is, or ""
	Live, Dead int64  // rows, by the estimate of Postgres' statistics
	Vacuumed   time.Time
	Off        bool // autovacuum is off for it
}

// Title returns a name of the table for people: "queue orders", or "table saga".
func (t Table) Title() string {
	if t.Endpoint != "" {
		return "queue " + t.Endpoint
	}
	return "table " + t.Name
}

// Client stands for all programs with one application_name.
type Client struct {
	Application string
	Connections int64
}

// KeptWAL is a replication slot with the write-ahead log that it keeps.
type KeptWAL struct {
	Slot   string
	Active bool
	Bytes  int64
}

// Server has the data of the server as a whole.
type Server struct {
	Used, Allowed int64   // connections; Allowed excludes reserved ones
	WALPerSecond  float64 // bytes, between the previous Read and this one; -1 at the first
	Tables        int64   // of the schema
	FreezeRatio   float64 // age of the oldest transaction id or multixact, by the age that starts autovacuum
}

// sortVitals puts the worst first.
func sortVitals(all []Vital) {
	slices.SortStableFunc(all, func(a, b Vital) int { return cmp.Compare(b.Level, a.Level) })
}

// says is Sprintf with a capital first letter.
func says(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return strings.ToUpper(text[:1]) + text[1:]
}

// quote returns a text of others on one line, printable.
func quote(text string) string { return strconv.Quote(text) }

func plain(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" {
		return name
	}
	return quote(name)
}
