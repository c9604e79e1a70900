package vitals

import (
	"context"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// standard returns the default thresholds.
func standard(t *testing.T) (limits Thresholds) {
	t.Helper()
	if err := limits.complete(); err != nil {
		t.Fatal(err)
	}
	return limits
}

func TestQuantitiesAreForPeople(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]Quantity{
		"41m0s": {2460, "s"}, "350ms": {0.35, "s"}, "12 MiB/s": {}, "0": {}, "1,234,567 rows": {1234567, "rows"},
		"999 rows": {999, "rows"}, "-1,000": {-1000, ""}, "93 %": {92.6, "%"}, "1023 B": {1023, "B"},
		"1.2 GiB": {1.2 * (1 << 30), "B"}, "300 MiB/s": {300 << 20, "B/s"}, "2048 TiB": {1 << 51, "B"},
	} {
		if q == (Quantity{}) {
			continue
		}
		if got := q.String(); got != want {
			t.Errorf("%v: %q, want %q", float64(q.Number), got, want)
		}
	}
	if Level(7).String() != "bad" || Level(-1).String() != "ok" || Warn.String() != "warn" {
		t.Error("the levels have other names")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	b := Bound{10, 20}
	for n, want := range map[float64]struct {
		level  Level
		begins float64
	}{9.9: {OK, 10}, 10: {Warn, 10}, 19: {Warn, 10}, 20: {Bad, 20}, 1e9: {Bad, 20}} {
		if level, begins := b.judge(n, "rows"); level != want.level || begins != (Quantity{want.begins, "rows"}) {
			t.Errorf("%v is %v from %v", n, level, begins)
		}
	}
	if level, begins := never.judge(1e300, "rows"); level != OK || begins != (Quantity{}) {
		t.Errorf("%v from %v", level, begins)
	}
	limits := Thresholds{Connections: Bound{Warn: 50}, DeadRows: Bound{Bad: -1}, Freeze: Bound{Warn: -1, Bad: -1}}
	if err := limits.complete(); err != nil || limits.Connections != (Bound{50, ConnectionsBad}) ||
		limits.DeadRows != (Bound{DeadRowsWarn, math.Inf(1)}) || limits.Freeze != never ||
		limits.VacuumedWithin != VacuumedWithin {
		t.Errorf("%+v, %v", limits, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := New(nil, Options{}); err == nil {
		t.Error("a pool that is nil was taken")
	}
	for want, o := range map[string]Options{
		"reserved":       {Schema: "pg_edda"},
		"Connections":    {Thresholds: Thresholds{Connections: Bound{Warn: 96}}},
		"Freeze":         {Thresholds: Thresholds{Freeze: Bound{Warn: math.NaN()}}},
		"VacuumedWithin": {Thresholds: Thresholds{VacuumedWithin: time.Second}},
	} {
		if _, err := New(pool, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// quiet returns the facts of a server without findings.
func quiet() *facts {
	return &facts{
		schema: "edda", database: "shop", xids: age{"shop", 100e6, 200e6}, multis: age{"shop", 10e6, 400e6},
		settings: map[string]string{"autovacuum": "on", "synchronous_commit": "on", "track_commit_timestamp": "off",
			"idle_in_transaction_session_timeout": "60000", "statement_timeout": "0", "max_locks_per_transaction": "64",
			"max_connections": "100", "max_prepared_transactions": "0"},
		report: Report{At: time.Now(), Role: "app", Visible: true,
			Tables: []Table{{Name: "queue_1", Endpoint: "orders", Dead: 500}},
			Server: Server{Used: 10, Allowed: 97, WALPerSecond: 1 << 20, Tables: 60}},
	}
}

// Conditions that a test cannot create on a server are judged from made-up facts.
func TestJudgements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *facts)
		vital  string
		level  Level
		says   string
	}{
		"quiet":          {func(*facts) {}, Freeze, OK, "is 100,000,000 old, 50 % of autovacuum_freeze_max_age."},
		"old ids":        {func(f *facts) { f.xids.now = 230e6 }, Freeze, Warn, "(FREEZE) in database \"shop\""},
		"very old ids":   {func(f *facts) { f.xids.now = 410e6 }, Freeze, Bad, "refuses to write"},
		"the last ids":   {func(f *facts) { f.xids = age{"a", 1.5e9, 1.9e9} }, Freeze, Bad, "refuses to write"},
		"old multixacts": {func(f *facts) { f.multis.now = 450e6 }, Freeze, Warn, "autovacuum_multixact_freeze"},
		"much WAL":       {func(f *facts) { f.report.Server.WALPerSecond = 1 << 30 }, WAL, Warn, "1.0 GiB of"},
		"autovacuum off": {func(f *facts) { f.settings["autovacuum"] = "off" }, Autovacuum, Bad, "the whole server"},
		"commit times": {func(f *facts) { f.settings["track_commit_timestamp"] = "on" }, Setting, Warn,
			"Edda does"},
		"few locks":        {func(f *facts) { f.locked = 6401 }, Setting, Warn, "6,400 locks, and the schema"},
		"enough locks":     {func(f *facts) { f.locked = 6400 }, Setting, OK, "as Edda's pages advise"},
		"vacuumed now":     {dead(1_000_000, time.Minute), DeadRows, OK, "its last vacuum was 1m0s ago"},
		"vacuumed once":    {dead(99_999, time.Hour), DeadRows, Warn, "its last vacuum was 1h0m0s ago"},
		"starved":          {dead(100_000, time.Hour), DeadRows, Bad, "pg_stat_progress_vacuum"},
		"slot, full":       {kept(10 << 30), Slot, Bad, `slot "a b" keeps 10.0 GiB`},
		"none allowed":     {func(f *facts) { f.report.Server.Allowed = 0 }, Connections, Bad, "10 of 0"},
		"old, not harmful": {held(time.Hour, 9_999), Snapshot, Warn, "1h0m0s and 7 transactions"},
		"old, harmful":     {held(10*time.Minute, 10_000), Snapshot, Bad, "each take reads over them"},
		"young":            {held(19*time.Second, 1_000_000), Snapshot, OK, "The oldest snapshot has been"},
	} {
		t.Run(name, func(t *testing.T) {
			f := quiet()
			c.change(f)
			r := f.judge(standard(t))
			if r.Worst(c.vital) != c.level || r.Worst() < c.level {
				t.Errorf("%s is %v, want %v", c.vital, r.Worst(c.vital), c.level)
			}
			for _, v := range r.Vitals {
				if v.Name == c.vital && strings.Contains(v.Sentence+" "+v.Do, c.says) {
					return
				}
			}
			t.Errorf("no vital says %q: %+v", c.says, r.Vitals)
		})
	}
}

// dead returns a change that gives the queue of orders rows dead rows, since after its last vacuum.
func dead(rows int64, since time.Duration) func(f *facts) {
	return func(f *facts) { f.report.Tables[0].Dead, f.report.Tables[0].Vacuumed = rows, f.report.At.Add(-since) }
}

func kept(n int64) func(f *facts) {
	return func(f *facts) { f.report.Slots = []KeptWAL{{"a b", true, n}} }
}

func held(d time.Duration, dead int64) func(f *facts) {
	return func(f *facts) {
		f.report.Holders = []Holder{{Kind: "session", Name: "7", Held: d, Transactions: 7}}
		f.report.Tables[0].Dead = dead
	}
}

// A snapshot that advances is a new snapshot each time, however old the session is.
func TestWatchedSnapshots(t *testing.T) {
	t.Parallel()
	r, now := &Reader{}, time.Now()
	for n, c := range []struct {
		after    time.Duration
		snapshot string
		want     time.Duration
	}{
		{0, "7", 0}, {time.Minute, "7", time.Minute}, {2 * time.Minute, "8", 0}, {3 * time.Minute, "8", time.Minute},
		{time.Minute, "8", 0}, {2 * time.Minute, "8", time.Minute}, {3 * time.Minute, "7", 0},
	} {
		holders := []Holder{{Kind: "standby", Name: "1", snapshot: c.snapshot}, {Kind: "standby", Name: "2"}}
		r.watch(now.Add(c.after), holders)
		if holders[0].Watched != c.want || len(r.seen) != 2 {
			t.Errorf("look %d: %v, want %v; %v", n, holders[0].Watched, c.want, r.seen)
		}
	}
}

// The rate compares two Reads of the same server.
func TestRateOfWAL(t *testing.T) {
	t.Parallel()
	r, now := &Reader{}, time.Now()
	for n, c := range []struct {
		after time.Duration
		wal   int64
		want  float64
	}{
		{0, 1000, -1}, {2 * time.Second, 5000, 2000}, {2*time.Second + time.Millisecond, 6000, 1_000_000},
		{4 * time.Second, 9000, 2000}, {5 * time.Second, 100, -1}, {6 * time.Second, 200, 100}, {time.Second, 300, -1},
		{2 * time.Second, 400, 100},
	} {
		if got := r.walRate(now.Add(c.after), c.wal); math.Abs(got-c.want) > 1 {
			t.Errorf("look %d: %v, want %v", n, got, c.want)
		}
	}
}

// A vital that oscillates at its threshold raises an alarm when it is bad first, and ends it when it was good twice.
func TestAlarmsDoNotFlutter(t *testing.T) {
	t.Parallel()
	w := watching{Watch: Watch{Reader: &Reader{}, Logger: slog.New(slog.DiscardHandler),
		Notify: func(context.Context, Alarm) error { return nil }}, bad: map[string]*sick{}, queue: make(chan Alarm,
		10)}
	var got strings.Builder
	for _, look := range "bbgbgbggggb" {
		level := map[rune]Level{'b': Bad, 'g': Warn}[look]
		w.compare(t.Context(), Report{Vitals: []Vital{{Name: Freeze, Level: level}, {Name: WAL}}})
		select {
		case a := <-w.queue:
			got.WriteString(map[bool]string{false: "B", true: "G"}[a.Over])
		default:
			got.WriteString(".")
		}
	}
	if got.String() != "B......G..B" {
		t.Errorf("the alarms are %s", got.String())
	}
}

// A slow Notify does not delay a Read: alarms that find no place are dropped and counted.
func TestSlowNotifyDropsAlarms(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := watching{Watch: Watch{Reader: &Reader{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Notify: func(context.Context, Alarm) error { return nil }}, queue: make(chan Alarm, waiting)}
	for range waiting + 7 {
		w.give(Alarm{})
	}
	w.logDropped()
	if !strings.Contains(log.String(), `msg="edda: alarms were dropped" dropped=7`) || w.dropped != 0 {
		t.Errorf("%d are dropped: %s", w.dropped, log.String())
	}
	w.Notify = func(context.Context, Alarm) error { panic("no network") }
	if err := w.notify(t.Context(), Alarm{}); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("a panic is %v", err)
	}
}

// The page states each threshold.
func TestPageStatesTheThresholds(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/vitals.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"SnapshotWarn": Quantity{SnapshotWarn.Seconds(), "s"}.String(), "TransactionsWarn": number(TransactionsWarn),
		"SnapshotBad": Quantity{SnapshotBad.Seconds(), "s"}.String(), "TransactionsBad": number(TransactionsBad),
		"DeadRowsWarn": number(DeadRowsWarn), "DeadRowsBad": number(DeadRowsBad),
		"VacuumedWithin":  Quantity{VacuumedWithin.Seconds(), "s"}.String(),
		"ConnectionsWarn": Quantity{ConnectionsWarn, "%"}.String(), "ConnectionsBad": Quantity{ConnectionsBad,
			"%"}.String(),
		"WALWarn": Quantity{WALWarn, "B/s"}.String(), "SlotWarn": size(SlotWarn), "SlotBad": size(SlotBad),
		"FreezeWarn": Quantity{FreezeWarn, "%"}.String(), "FreezeBad": Quantity{FreezeBad, "%"}.String(),
	} {
		if want := "`" + name + "` " + value; !strings.Contains(string(page), want) {
			t.Errorf("docs/operate/vitals.md does not have %q", want)
		}
	}
}
