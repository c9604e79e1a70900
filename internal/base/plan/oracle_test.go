package plan

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// evaluations is how many due times TestCronEvaluations computes. All of them:
//
//	go test ./internal/base/plan -run TestCronEvaluations -evaluations 1000000 -v
var evaluations = flag.Int("evaluations", 30_000, "due times that TestCronEvaluations computes")

// oracle stores an expression as plain sets, and finds due times by stepping through time and checking the clock at
// each step.
type oracle struct {
	expr   string
	fields [6][]bool // second, minute, hour, day of month, month, weekday
	either bool
	out    []Exclusion
}

// names reports whether the expression includes the time that the clock shows, written as a time of UTC.
func (o oracle) names(shown time.Time) bool {
	f := o.fields
	dom, dow := f[3][shown.Day()], f[5][shown.Weekday()]
	on := dom && dow
	if o.either {
		on = dom || dow
	}
	return on && f[4][shown.Month()] && f[2][shown.Hour()] && f[1][shown.Minute()] && f[0][shown.Second()] &&
		!slices.ContainsFunc(o.out, func(e Exclusion) bool { return covers(e, shown) })
}

// covers implements an Exclusion a second time, from its docstring.
func covers(e Exclusion, shown time.Time) bool {
	tod := shown.Format(time.TimeOnly)
	date := time.Date(shown.Year(), shown.Month(), shown.Day(), 0, 0, 0, 0, time.UTC)
	switch {
	case e.Start == "":
	case e.Start < e.End && (tod < e.Start || tod >= e.End):
		return false
	case e.Start >= e.End && tod < e.End:
		date = date.AddDate(0, 0, -1)
	case e.Start >= e.End && tod < e.Start:
		return false
	}
	text := date.Format(time.DateOnly)
	return (len(e.Days) == 0 || slices.Contains(e.Days, date.Weekday())) &&
		(e.From == "" || text >= e.From) && (e.To == "" || text <= e.To)
}

// walk reads the zone's clock at each step and returns the due times from from until before to.
func (o oracle) walk(zone *time.Location, w window) (due []time.Time) {
	label := func(t time.Time) time.Time {
		_, offset := t.In(zone).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	t := w.from.Add(-48 * time.Hour)
	most := label(t)
	for ; t.Before(w.to); t = t.Add(w.step) {
		named := false
		for shown := label(t); most.Before(shown); {
			most = most.Add(w.step)
			named = named || !t.Before(w.from) && o.names(most)
		}
		if named {
			due = append(due, t)
		}
	}
	return due
}

type window struct {
	from, to time.Time
	step     time.Duration
}

// dice generates expressions and the sets that they represent.
type dice struct{ *rand.Rand }

var bounds = [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

var monthNames = []string{"", "jan", "FEB", "mar", "Apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

var dayNames = []string{"sun", "MON", "tue", "wed", "thu", "fri", "sat"}

func (d dice) name(field, n int) string {
	switch {
	case field == 4 && d.IntN(2) == 0:
		return monthNames[n]
	case field == 5 && d.IntN(2) == 0:
		return dayNames[n]
	}
	return fmt.Sprint(n)
}

// term adds the values of the text to set. open reports whether the text is * or similar.
func (d dice) term(field int, set []bool) (text string, open bool) {
	low, high := bounds[field][0], bounds[field][1]
	a := low + d.IntN(high-low+1)
	b := a + d.IntN(high-a+1)
	step := 1
	switch d.IntN(6) {
	case 0:
		text, a, b, open = []string{"*", "?"}[d.IntN(2)], low, high, true
	case 1:
		step = 2 + d.IntN(high)
		text, a, b = fmt.Sprintf("*/%d", step), low, high
	case 2:
		text = d.name(field, a) + "-" + d.name(field, b)
	case 3:
		step = 1 + d.IntN(7)
		text = fmt.Sprintf("%s-%s/%d", d.name(field, a), d.name(field, b), step)
	case 4:
		step = 1 + d.IntN(20)
		text, b = fmt.Sprintf("%s/%d", d.name(field, a), step), high
	default:
		text, b = d.name(field, a), a
	}
	for n := a; n <= b; n += step {
		set[n] = true
	}
	return text, open
}

func (d dice) expression(seconds bool) oracle {
	var o oracle
	var texts []string
	openDay := false
	for field := range bounds {
		set := make([]bool, 64)
		o.fields[field] = set
		switch {
		case field == 0 && !seconds:
			set[0] = true
			continue
		case d.IntN(5) < 2 || field >= 3 && d.IntN(3) > 0:
			texts, openDay = append(texts, "*"), openDay || field == 3 || field == 5
			for n := bounds[field][0]; n <= bounds[field][1]; n++ {
				set[n] = true
			}
			continue
		}
		var terms []string
		for range 1 + d.IntN(3) {
			text, open := d.term(field, set)
			terms = append(terms, text)
			openDay = openDay || open && (field == 3 || field == 5)
		}
		texts = append(texts, strings.Join(terms, ","))
	}
	o.expr, o.either = strings.Join(texts, " "), !openDay
	return o
}

func (d dice) exclusion() Exclusion {
	tod := func() string { return fmt.Sprintf("%02d:%02d:00", d.IntN(24), d.IntN(4)*15) }
	var e Exclusion
	if d.IntN(2) == 0 {
		e.Days = []time.Weekday{time.Weekday(d.IntN(7)), time.Weekday(d.IntN(7))}
	}
	if d.IntN(4) == 0 {
		from := time.Date(2026, 1, 1+d.IntN(700), 0, 0, 0, 0, time.UTC)
		e.From, e.To = from.Format(time.DateOnly), from.AddDate(0, 0, d.IntN(60)).Format(time.DateOnly)
	}
	if d.IntN(3) > 0 || len(e.Days) == 0 && e.From == "" {
		e.Start, e.End = tod(), "23:30:00"
		if d.IntN(2) == 0 {
			e.End = tod()
		}
	}
	return e
}

// twentyZones have changes of the clock of both hemispheres, of half an hour and of two, at midnight, and no changes.
var twentyZones = []string{
	"Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Los_Angeles", "America/St_Johns",
	"America/Santiago", "America/Asuncion", "America/Havana", "Australia/Sydney", "Australia/Lord_Howe",
	"Pacific/Auckland",
	"Pacific/Chatham", "Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Kathmandu", "Antarctica/Troll",
	"Atlantic/Azores", "UTC",
}

// rareChanges are days with an unusual change of the clock.
var rareChanges = []struct {
	zone string
	day  string
}{
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // no 30 December
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"}, // no 21 August
	{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"}, // 23 hours back
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"}, // no midnight
	{"America/Sao_Paulo", "2019-02-17T02:00:00Z"}, // back over midnight
	{"America/Caracas", "2007-12-09T07:00:00Z"},   // half an hour back
	{"America/Caracas", "2016-05-01T07:00:00Z"},   // half an hour forward
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z"},    // half an hour back, before midnight
	{"Asia/Tehran", "2021-03-21T20:30:00Z"},       // no midnight
	{"Europe/Moscow", "2014-10-25T22:00:00Z"},     // back for good
	{"Africa/Juba", "2021-01-31T21:00:00Z"},       // back for good, over midnight
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"},   // 44 min 30 s forward
	{"Europe/Amsterdam", "1940-05-15T23:40:00Z"},  // an odd offset
	{"America/Argentina/San_Luis", "2008-01-21T02:00:00Z"},
}

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := loadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// pick returns a window of three days, by minutes, or of six hours, by seconds. Two of three are around a change of
// the clock.
func (d dice) pick(t testing.TB, seconds bool) (*time.Location, window) {
	w := window{step: time.Minute}
	zone := zoneOf(t, twentyZones[d.IntN(len(twentyZones))])
	mid := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(d.IntN(2*365*24*60)) * time.Minute)
	if _, end := mid.In(zone).ZoneBounds(); !end.IsZero() && d.IntN(3) > 0 {
		mid = end.UTC()
	}
	if d.IntN(16) == 0 {
		rare := rareChanges[d.IntN(len(rareChanges))]
		zone, mid = zoneOf(t, rare.zone), at(rare.day)
	}
	half := 36 * time.Hour
	if _, offset := mid.In(zone).Zone(); seconds || offset%60 != 0 || mid.Second() != 0 {
		w.step, half = time.Second, 3*time.Hour
	}
	if mid.Before(at("1980-01-01T00:00:00Z")) {
		w.step, half = time.Second, 3*time.Hour
	}
	w.from, w.to = mid.Add(-half), mid.Add(half)
	return zone, w
}

func TestCronEvaluations(t *testing.T) {
	t.Parallel()
	d := dice{rand.New(rand.NewPCG(5, 10))}
	done, cases, spent := 0, 0, time.Duration(0)
	for ; done < *evaluations; cases++ {
		seconds := cases%8 == 0
		o := d.expression(seconds)
		zone, w := d.pick(t, seconds)
		for range max(d.IntN(6)-3, 0) {
			o.out = append(o.out, d.exclusion())
		}
		begin := w.from
		if d.IntN(2) == 0 {
			begin = begin.Add(time.Duration(d.Int64N(int64(w.to.Sub(w.from)/time.Millisecond))) * time.Millisecond)
		}
		due, n, took := o.compare(t, zone, w, begin)
		done, spent = done+n, spent+took
		if t.Failed() {
			t.Fatalf("case %d: %s in %v, %d exclusions %v, from %v until %v", cases, o.expr, zone, len(o.out), o.out,
				w.from, w.to)
		}
		d.check(t, o, zone, w, due)
	}
	t.Logf("%d evaluations of %d expressions: %d ns each", done, cases, spent.Nanoseconds()/int64(done))
}

// compile returns the plan of the oracle's expression; nil if it never fires.
func (o oracle) compile(t *testing.T, zone *time.Location) *Plan {
	t.Helper()
	p, err := Definition{Rule: cronRule(o.expr, zone.String()), Exclude: o.out}.Compile()
	if err != nil && !strings.Contains(err.Error(), "never fires") {
		t.Fatalf("%s: %v", o.expr, err)
	}
	return p
}

// most is how many due times of one expression are compared: a million due times of a few dense expressions would
// prove little.
const most = 300

// compare steps through the window with the oracle, and from begin on with the plan.
func (o oracle) compare(t *testing.T, zone *time.Location, w window, begin time.Time) (due []time.Time, n int,
	took time.Duration) {
	t.Helper()
	due = o.walk(zone, w)
	p := o.compile(t, zone)
	if p == nil {
		if len(due) > 0 {
			t.Errorf("it is said to never fire, and is due at %v", due[0].In(zone))
		}
		return due, 1, 0
	}
	s := p.slots(w.from)
	var got []time.Time
	started := time.Now()
	for at := begin.Add(-time.Microsecond); n < most; {
		next := s.after(at)
		n++
		if next.IsZero() || !next.Before(w.to) {
			break
		}
		if !next.After(at) {
			t.Fatalf("after %v comes %v", at, next)
		}
		got, at = append(got, next), next
	}
	took = time.Since(started)
	i := slices.IndexFunc(due, func(t time.Time) bool { return !t.Before(begin) })
	want := due[len(due):]
	if i >= 0 {
		want = due[i:]
	}
	same(t, zone, want[:min(len(want), most)], got)
	return due, n, took
}

func same(t *testing.T, zone *time.Location, want, got []time.Time) {
	t.Helper()
	shown := map[string]bool{}
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			t.Errorf("%v is missing", want[i].In(zone))
		case i >= len(want):
			t.Errorf("%v is too much", got[i])
		case !want[i].Equal(got[i]):
			t.Errorf("want %v, got %v", want[i].In(zone), got[i])
		case shown[got[i].Format(time.DateTime)]:
			t.Errorf("the clock showed %v before", got[i])
		}
		if t.Failed() {
			return
		}
		shown[got[i].Format(time.DateTime)] = true
	}
}

// check compares counts and the last due time at random times of the window.
func (d dice) check(t *testing.T, o oracle, zone *time.Location, w window, due []time.Time) {
	t.Helper()
	p := o.compile(t, zone)
	if p == nil {
		return
	}
	s := p.slots(w.from)
	length := int64(w.to.Sub(w.from) / time.Millisecond)
	for range 3 {
		a := w.from.Add(time.Duration(d.Int64N(length)) * time.Millisecond)
		b := w.from.Add(time.Duration(d.Int64N(length)) * time.Millisecond)
		if b.Before(a) {
			a, b = b, a
		}
		want, last := 0, time.Time{}
		for _, at := range due {
			if at.After(a) && !at.After(b) {
				want++
			}
			if !at.After(b) {
				last = at
			}
		}
		if got, _ := s.count(a, b); got != want {
			t.Fatalf("%s in %v: %d due times after %v up to %v, counted %d; exclusions %v", o.expr, zone, want, a, b,
				got, o.out)
		}
		if got := s.upTo(b); !last.IsZero() && !got.Equal(last) {
			t.Fatalf("%s in %v: the last up to %v is %v, found %v; exclusions %v", o.expr, zone, b, last.In(zone), got,
				o.out)
		}
	}
}

// FuzzCron tries any text. An expression that parses is compared with the oracle around a change of the clock.
func FuzzCron(f *testing.F) {
	for _, expr := range []string{"*/5 * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 30 2 *", "@daily", "@every 1s", "TZ=",
		"CRON_TZ=UTC * * * * *",
		"0 0 1 1 * 2030 *", "* * * * * *", "5,*/7 2-3 ? jan-MAR mon", "60 * * * *", "*/99999999999 * * * *",
		"0 0 1-31/2 * 0", "-1 * * * *", "@"} {
		f.Add(expr, uint8(0), int64(1_774_746_000))
		f.Add(expr, uint8(10), int64(1_775_314_800))
	}
	f.Fuzz(func(t *testing.T, expr string, zone uint8, unix int64) {
		location := zoneOf(t, twentyZones[int(zone)%len(twentyZones)])
		c, err := parseCron(expr)
		if err != nil {
			return
		}
		mid := time.Unix(unix%4_000_000_000, 0).Truncate(time.Minute)
		if _, end := mid.In(location).ZoneBounds(); !end.IsZero() {
			mid = end
		}
		o := oracle{expr: expr, either: c.eitherDay}
		for field, set := range []uint64{c.second, c.minute, c.hour, c.dom, c.month, c.dow} {
			o.fields[field] = make([]bool, 64)
			for n := range 64 {
				o.fields[field][n] = has(set, n)
			}
		}
		from := mid.Add(-2 * time.Hour).UTC()
		o.compare(t, location, window{from, mid.Add(2 * time.Hour).UTC(), time.Second}, mid.Add(-2*time.Minute))
	})
}
