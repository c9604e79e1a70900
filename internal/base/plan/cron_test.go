package plan

import (
	"strings"
	"testing"
	"time"
)

// The statements of Cron's docstring about changes of the clock, and frequent questions.
func TestCronWhenTheClockIsChanged(t *testing.T) {
	t.Parallel()
	const minute = "02 15:04 -0700"
	for _, c := range []struct{ name, expr, zone, after, want string }{
		{"02:30 while the clock goes forward", "30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z",
			"28 02:30 +0100, 29 03:00 +0200, 30 02:30 +0200"},
		{"02:30 while the clock goes back", "30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z",
			"24 02:30 +0200, 25 02:30 +0200, 26 02:30 +0100"},
		{"each half hour, forward", "*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			"29 01:30 +0100, 29 03:00 +0200, 29 03:30 +0200"},
		{"each half hour, back", "*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z",
			"25 02:00 +0200, 25 02:30 +0200, 25 03:00 +0100"},
		{"a quarter past, forward", "15 * * * *", "America/New_York", "2026-03-08T06:00:00Z",
			"08 01:15 -0500, 08 03:00 -0400, 08 03:15 -0400"},
		{"03:00 and all that is jumped over, together", "* 2,3 * * *", "America/New_York", "2026-03-08T06:58:00Z",
			"08 03:00 -0400, 08 03:01 -0400, 08 03:02 -0400"},
		{"half an hour forward", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z",
			"04 02:30 +1100, 05 02:15 +1100, 06 02:15 +1100"},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z",
			"05 01:45 +1100, 06 01:45 +1030, 07 01:45 +1030"},
		{"a quarter of an hour's zone", "0 3 * * *", "Pacific/Chatham", "2026-09-25T20:00:00Z",
			"27 03:45 +1345, 28 03:00 +1345, 29 03:00 +1345"},
		{"no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T04:00:00Z",
			"04 01:00 -0200, 05 00:00 -0200, 06 00:00 -0200"},
		{"midnight twice", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z",
			"01 00:00 -0400, 02 00:00 -0500, 03 00:00 -0500"},
		{"no 30 December", "0 9 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z",
			"29 09:00 -1000, 31 00:00 +1400, 31 09:00 +1400"},
		{"a job of that day alone", "0 9 30 12 *", "Pacific/Apia", "2010-12-31T00:00:00Z",
			"31 00:00 +1400, 30 09:00 +1400, 30 09:00 +1400"},
		{"the end of a year", "59 59 23 31 12 *", "UTC", "2026-12-31T23:59:58Z",
			"31 23:59 +0000, 31 23:59 +0000, 31 23:59 +0000"},
	} {
		p := compiled(t, Definition{Rule: cronRule(c.expr, c.zone)})
		var got []string
		for _, due := range p.Next(at(c.after), 3) {
			got = append(got, due.Format(minute))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s in %s\ngot  %s\nwant %s", c.name, c.expr, c.zone, got, c.want)
		}
	}
}

func TestCronOverYears(t *testing.T) {
	t.Parallel()
	p := compiled(t, Definition{Rule: cronRule("0 0 29 2 *", "UTC")})
	var years []int
	for _, due := range p.Next(at("2090-01-01T00:00:00Z"), 3) {
		years = append(years, due.Year())
	}
	if len(years) != 3 || years[0] != 2092 || years[1] != 2096 || years[2] != 2104 {
		t.Errorf("29 February: %v", years)
	}
	if due := p.Next(at("9997-01-01T00:00:00Z"), 3); len(due) != 0 {
		t.Errorf("after the years that can be written: %v", due)
	}
	always := []Exclusion{{From: "2000-01-01"}}
	if due := compiled(t, Definition{Rule: cronRule("* * * * * *", "UTC"), Exclude: always}).Next(
		at("2026-01-01T00:00:00Z"),
		1); len(
		due,
	) != 0 {
		t.Errorf("all is excluded: %v", due)
	}
	if due := compiled(t, Definition{Rule: every(time.Second), Exclude: always}).Next(at("2026-01-01T00:00:00Z"),
		1); len(due) != 0 {
		t.Errorf("all is excluded: %v", due)
	}
}

func TestExclusionOverMidnight(t *testing.T) {
	t.Parallel()
	friday := Exclusion{Days: []time.Weekday{time.Friday}, Start: "22:00:00", End: "06:00:00"}
	p := compiled(t, Definition{Rule: cronRule("0 2,23 * * *", "Asia/Tokyo"), Exclude: []Exclusion{friday}})
	var got []string
	for _, due := range p.Next(at("2026-01-01T00:00:00Z"), 4) { // this is a Thursday
		got = append(got, due.Format("Mon 15:04"))
	}
	if got, want := strings.Join(got, ", "), "Thu 23:00, Fri 02:00, Sat 23:00, Sun 02:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A list with an empty element is refused: it would fire at a time that the expression does not name.
func TestListsOfCronHaveNoEmptyElement(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{", * * * *", "1, * * * *", ",1 * * * *", "1,,2 * * * *", "0 , * * *", ", 0 * * * *",
		"0 0 * * 1,", "0 0 ,,, * *", "0 0 1 , *"} {
		d := Definition{Rule: Rule{Kind: Cron, Expr: expr, Zone: "UTC"}}
		if _, err := d.Compile(); err == nil || !strings.Contains(err.Error(), "empty element") {
			t.Errorf("%q: %v", expr, err)
		}
	}
}
