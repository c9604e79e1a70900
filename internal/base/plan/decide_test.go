package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

func cronRule(expr, zone string) Rule { return Rule{Kind: Cron, Expr: expr, Zone: zone} }
func every(d time.Duration) Rule      { return Rule{Kind: Every, Every: d} }
func once(t time.Time) Rule           { return Rule{Kind: Once, At: t} }
func onDemand() Rule                  { return Rule{Kind: OnDemand} }
func after(manifest string) Rule      { return Rule{Kind: After, Parent: manifest} }
func dormant(manifest string) Rule    { return Rule{Kind: Dormant, Parent: manifest} }

// compiled returns the plan of a definition after it was stored.
func compiled(t *testing.T, d Definition) *Plan {
	t.Helper()
	stored, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back Definition
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Fatalf("the definition is not what was stored:\n%s", diff)
	}
	p, err := back.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type judged struct {
	Fire, Next       string
	Missed, Excluded int
}

func (v Verdict) told() judged {
	tell := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return judged{tell(v.Fire), tell(v.Next), v.Missed, v.Excluded}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	fiveMinutes := cronRule("*/5 * * * *", "UTC")
	night := []Exclusion{{Start: "12:00:00", End: "13:00:00"}}
	for _, c := range []struct {
		name     string
		m        Definition
		due, now string
		want     judged
	}{
		{"on time", Definition{Rule: fiveMinutes}, "2026-03-01T10:00:00Z", "2026-03-01T10:00:00.4Z",
			judged{"2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z", 0, 0}},
		{"skip: back after two minutes", Definition{Rule: fiveMinutes, Misfire: MisfireSkip}, "2026-03-01T10:00:00Z",
			"2026-03-01T13:02:00Z",
			judged{"", "2026-03-01T13:05:00Z", 37, 0}},
		{"skip: back within the minute", Definition{Rule: fiveMinutes, Misfire: MisfireSkip}, "2026-03-01T10:00:00Z",
			"2026-03-01T13:00:30Z",
			judged{"2026-03-01T13:00:00Z", "2026-03-01T13:05:00Z", 36, 0}},
		{"skip: back at the last moment", Definition{Rule: fiveMinutes, Misfire: MisfireSkip}, "2026-03-01T10:00:00Z",
			"2026-03-01T13:01:00Z",
			judged{"2026-03-01T13:00:00Z", "2026-03-01T13:05:00Z", 36, 0}},
		{"skip: a longer threshold", Definition{Rule: fiveMinutes, Misfire: MisfireSkip, MisfireBy: 3 * time.Minute},
			"2026-03-01T10:00:00Z", "2026-03-01T13:02:00Z",
			judged{"2026-03-01T13:00:00Z", "2026-03-01T13:05:00Z", 36, 0}},
		{"once: the last one", Definition{Rule: fiveMinutes}, "2026-03-01T10:00:00Z", "2026-03-01T13:02:00Z",
			judged{"2026-03-01T13:00:00Z", "2026-03-01T13:05:00Z", 36, 0}},
		{"all: the first one", Definition{Rule: fiveMinutes, Misfire: MisfireAll}, "2026-03-01T10:00:00Z",
			"2026-03-01T13:02:00Z",
			judged{"2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z", 0, 0}},
		{"all: the last three", Definition{Rule: fiveMinutes, Misfire: MisfireAll, MisfireUp: 3},
			"2026-03-01T10:00:00Z",
			"2026-03-01T13:02:00Z",
			judged{"2026-03-01T12:50:00Z", "2026-03-01T12:55:00Z", 34, 0}},
		{"exclusions are no misfire", Definition{Rule: fiveMinutes, Exclude: night}, "2026-03-01T11:55:00Z",
			"2026-03-01T13:02:00Z",
			judged{"2026-03-01T13:00:00Z", "2026-03-01T13:05:00Z", 1, 12}},
		{"all over an exclusion", Definition{Rule: fiveMinutes, Exclude: night, Misfire: MisfireAll},
			"2026-03-01T11:55:00Z", "2026-03-01T13:02:00Z",
			judged{"2026-03-01T11:55:00Z", "2026-03-01T13:00:00Z", 0, 12}},
		{"all that is due is excluded", Definition{Rule: fiveMinutes, Exclude: night, Misfire: MisfireAll},
			"2026-03-01T12:05:00Z", "2026-03-01T12:17:00Z",
			judged{"", "2026-03-01T13:00:00Z", 0, 3}},
		{"an interval stays on its interval", Definition{Rule: every(7 * time.Second)}, "2026-03-01T10:00:03Z",
			"2026-03-01T10:00:40Z",
			judged{"2026-03-01T10:00:38Z", "2026-03-01T10:00:45Z", 5, 0}},
		{"an interval of a second, a year later",
			Definition{Rule: every(time.Second), Misfire: MisfireAll, MisfireUp: 10}, "2026-03-01T10:00:00Z",
			"2027-03-01T10:00:00Z",
			judged{"2027-03-01T09:59:51Z", "2027-03-01T09:59:52Z", 31536001 - 10, 0}},
		{"each second by cron, a year later",
			Definition{Rule: cronRule("* * * * * *", "Europe/Berlin"), Misfire: MisfireAll, MisfireUp: 1_000_000},
			"2026-03-01T10:00:00Z", "2027-03-01T10:00:00Z",
			judged{"2027-02-17T20:13:21Z", "2027-02-17T20:13:22Z", 31536001 - 3600 - 1_000_000, 0}},
		{"an interval with exclusions", Definition{Rule: every(10 * time.Minute), Exclude: night},
			"2026-03-01T11:45:00Z",
			"2026-03-01T13:30:00Z",
			judged{"2026-03-01T13:25:00Z", "2026-03-01T13:35:00Z", 4, 6}},
		{"once, late", Definition{Rule: once(at("2026-03-01T10:00:00Z"))}, "2026-03-01T10:00:00Z",
			"2026-03-04T10:00:00Z",
			judged{"2026-03-01T10:00:00Z", "", 0, 0}},
		{"once, too late", Definition{Rule: once(at("2026-03-01T10:00:00Z")), Misfire: MisfireSkip},
			"2026-03-01T10:00:00Z", "2026-03-01T10:01:01Z",
			judged{"", "", 1, 0}},
		{"expired before it was due", Definition{Rule: fiveMinutes, Expires: at("2026-03-01T10:00:00Z")},
			"2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z",
			judged{}},
		{"the last before it expires", Definition{Rule: fiveMinutes, Expires: at("2026-03-01T10:05:00Z")},
			"2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z",
			judged{"2026-03-01T10:00:00Z", "", 0, 0}},
		{"all until it expires", Definition{Rule: fiveMinutes, Misfire: MisfireAll,
			Expires: at("2026-03-01T10:10:00Z")},
			"2026-03-01T10:05:00Z", "2026-03-01T11:00:00Z",
			judged{"2026-03-01T10:05:00Z", "", 0, 0}},
		{"a follower, whatever its policy", Definition{Rule: after("parent"), Misfire: MisfireSkip},
			"2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z",
			judged{"2026-03-01T10:00:00Z", "", 0, 0}},
		{"a due that the rule does not name", Definition{Rule: fiveMinutes}, "2026-03-01T10:01:00Z",
			"2026-03-01T10:02:00Z",
			judged{"2026-03-01T10:01:00Z", "2026-03-01T10:05:00Z", 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			got := compiled(t, c.m).Decide(at(c.due), at(c.now)).told()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("due %s, evaluated at %s:\n%s", c.due, c.now, diff)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("it took %v: the cost must not grow with the due times that passed", took)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	now := at("2026-03-01T10:00:00.1234567Z")
	sunday := []Exclusion{{Days: []time.Weekday{time.Sunday}}}
	for _, c := range []struct {
		name string
		m    Definition
		want string
	}{
		{"cron", Definition{Rule: cronRule("0 9 * * *", "Asia/Tokyo")}, "2026-03-02T00:00:00Z"},
		{"interval: at once", Definition{Rule: every(time.Hour)}, "2026-03-01T10:00:00.123456Z"},
		{"interval on an excluded day", Definition{Rule: every(time.Hour), Exclude: sunday},
			"2026-03-02T00:00:00.123456Z"},
		{"once, in the past", Definition{Rule: once(at("2020-01-01T00:00:00Z"))}, "2020-01-01T00:00:00Z"},
		{"once, excluded", Definition{Rule: once(at("2026-03-08T00:00:00Z")), Exclude: sunday}, ""},
		{"expired", Definition{Rule: every(time.Hour), Expires: at("2026-03-01T00:00:00Z")}, ""},
		{"on demand", Definition{Rule: onDemand()}, ""},
		{"follower", Definition{Rule: after("x")}, ""},
		{"dormant", Definition{Rule: dormant("x")}, ""},
	} {
		got := Verdict{Fire: compiled(t, c.m).First(now)}.told().Fire
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
