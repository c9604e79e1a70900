package scheduler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

func valid(m Manifest) Manifest {
	m.Name, m.Message = "m", saga.Raw{Name: "go"}
	return m
}

func TestFaultsNameTheFieldAndTheLimit(t *testing.T) {
	t.Parallel()
	every := Every(time.Minute)
	noon, zero := Window{TimeOfDay{12, 0, 0}, TimeOfDay{13, 0, 0}}, time.Time{}
	for _, c := range []struct {
		m    Manifest
		want []string
	}{
		{Manifest{}, []string{"When", "Cron, Every, Once"}},
		{Manifest{When: every, Group: "No"}, []string{"Group", "127"}},
		{Manifest{When: every, Message: saga.Raw{Name: "No"}}, []string{"Message", "63"}},
		{Manifest{When: Cron("* * * * *", "")}, []string{"zone is empty", "Europe/Berlin"}},
		{Manifest{When: Cron("* * * * *", "Local")}, []string{"Local"}},
		{Manifest{When: Cron("* * * * *", "Mars/Olympus")}, []string{"Mars/Olympus", "unknown"}},
		{Manifest{When: Cron("* * * * *", "../etc/passwd")}, []string{"unknown"}},
		{Manifest{When: Cron("", "UTC")}, []string{"empty"}},
		{Manifest{When: Cron("* * * *", "UTC")}, []string{"found 4"}},
		{Manifest{When: Cron("0 0 0 1 1 * 2030", "UTC")}, []string{"7 fields", "5, or 6"}},
		{Manifest{When: Cron("TZ=UTC * * * * *", "UTC")}, []string{"second parameter"}},
		{Manifest{When: Cron("TZ=", "UTC")}, []string{"second parameter"}},
		{Manifest{When: Cron("CRON_TZ=Asia/Tokyo * * * * *", "UTC")}, []string{"second parameter"}},
		{Manifest{When: Cron("@every 5m", "UTC")}, []string{"use Every"}},
		{Manifest{When: Cron("@reboot", "UTC")}, []string{"@reboot"}},
		{Manifest{When: Cron("60 * * * *", "UTC")}, []string{"60", "59"}},
		{Manifest{When: Cron("0 0 30 2 *", "UTC")}, []string{"never fires"}},
		{Manifest{When: Cron("0 0 31 4,6,9,11 *", "UTC")}, []string{"never fires"}},
		{Manifest{When: Cron(strings.Repeat("1,", 200)+"1 * * * *", "UTC")}, []string{"255"}},
		{Manifest{When: Every(0)}, []string{"Every", "1s", "whole microseconds"}},
		{Manifest{When: Every(time.Second - 1)}, []string{"1s"}},
		{Manifest{When: Every(time.Second + 1)}, []string{"whole microseconds"}},
		{Manifest{When: Every(100_000 * time.Hour)}, []string{"87840h"}},
		{Manifest{When: Once(zero)}, []string{"Once", "zero time"}},
		{Manifest{When: Once(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))}, []string{"9999"}},
		{Manifest{When: After("")}, []string{"before it", "127"}},
		{Manifest{When: After("m")}, []string{"itself"}},
		{Manifest{When: Dormant("m")}, []string{"itself"}},
		{Manifest{When: every, Misfire: 3}, []string{"Misfire", "MisfireAll"}},
		{Manifest{When: every, MisfireBy: -1}, []string{"MisfireBy", "0 to"}},
		{Manifest{When: every, MisfireUp: 1_000_001}, []string{"MisfireUp", "1000000"}},
		{Manifest{When: every, Variance: 25 * time.Hour}, []string{"Variance", "24h"}},
		{Manifest{When: every, Expires: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"Expires", "9999"}},
		{Manifest{When: every, Timeout: time.Millisecond}, []string{"Timeout", "NoTimeout"}},
		{Manifest{When: every, Retries: -2}, []string{"Retries", "-1 to 100"}},
		{Manifest{When: every, Retries: 101}, []string{"Retries", "-1 to 100"}},
		{Manifest{When: every, RetryDelay: -1}, []string{"RetryDelay"}},
		{Manifest{When: every, MaxRetryDelay: -1}, []string{"MaxRetryDelay"}},
		{Manifest{When: every, Priority: 32}, []string{"Priority", "0 to 31"}},
		{Manifest{When: every, Exclude: []Exclusion{{}}}, []string{"Exclude[0]", "empty"}},
		{Manifest{When: every, Exclude: make([]Exclusion, 101)}, []string{"Exclude", "100"}},
		{Manifest{When: every, Exclude: []Exclusion{{Of: noon},
			{From: at("2026-02-01T00:00:00Z"), To: at("2026-01-31T00:00:00Z")}}},
			[]string{"Exclude[1]", "To is before From"}},
		{Manifest{When: every, Exclude: []Exclusion{{Days: []time.Weekday{7}}}}, []string{"Days", "0 (Sunday) to 6"}},
		{Manifest{When: every, Exclude: []Exclusion{{Of: Window{End: TimeOfDay{24, 0, 0}}}}},
			[]string{"Exclude[0]", "23:59:59"}},
		{Manifest{When: every, Exclude: []Exclusion{{Of: Window{Start: TimeOfDay{0, -1, 0}}}}},
			[]string{"Exclude[0]", "23:59:59"}},
		{Manifest{When: OnDemand(), Exclude: []Exclusion{{Of: noon}}}, []string{"Exclude", "Cron, Every and Once"}},
	} {
		c.m.Name = "m"
		if c.m.Message == nil {
			c.m.Message = saga.Raw{Name: "go"}
		}
		_, err := c.m.compile()
		if err == nil {
			t.Errorf("no fault in %+v, want one with %q", c.m, c.want)
			continue
		}
		for _, want := range append(c.want, "manifest m") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("fault %q does not say %q", err, want)
			}
		}
	}
	for _, name := range []string{"", "A", "1a", "a b", "ä", strings.Repeat("a", 128)} {
		if _, err := (Manifest{Name: name, When: every, Message: saga.Raw{Name: "go"}}).compile(); err == nil ||
			!strings.Contains(err.Error(), "Name: name of") {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := (Manifest{Name: "m", When: every}).compile(); err == nil || !strings.Contains(err.Error(), "Message") {
		t.Errorf("no message: %v", err)
	}
}

// All later releases must read the definitions that a release has stored.
func TestDefinitionAsItIsStored(t *testing.T) {
	t.Parallel()
	m := valid(Manifest{
		When: Cron("0 2 * * *", "Europe/Berlin"), Misfire: MisfireAll, MisfireBy: time.Minute, MisfireUp: 7,
		Variance: time.Second,
		Expires:  at("2030-01-02T04:04:05.1234567+01:00"), Retries: -1,
		Exclude: []Exclusion{
			{Days: []time.Weekday{time.Sunday, time.Saturday, time.Sunday},
				Of: Window{TimeOfDay{22, 0, 0}, TimeOfDay{6, 30, 15}}},
			{From: at("2026-12-24T23:00:00-08:00"), To: at("2026-12-26T00:00:00Z")},
		},
	})
	got, err := json.Marshal(m.definition())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"rule":{"kind":"cron","expr":"0 2 * * *","zone":"Europe/Berlin"},"misfire":"all",` +
		`"misfire_by":60000000000,"misfire_up":7,` +
		`"exclude":[{"days":[0,6],"start":"22:00:00","end":"06:30:15"},{"from":"2026-12-24","to":"2026-12-26"}],` +
		`"variance":1000000000,"expires":"2030-01-02T03:04:05.123456Z"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := m.compile(); err != nil {
		t.Error(err)
	}

	for _, broken := range []string{`{}`, `{"rule":{"kind":"moon"}}`, `{"rule":{"kind":"every"}}`,
		`{"rule":{"kind":"every","every":1000000000},"exclude":[{"start":"1"}]}`} {
		var d plan.Definition
		if err := json.Unmarshal([]byte(broken), &d); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Compile(); err == nil {
			t.Errorf("%s compiles", broken)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	f := Manifest{}.filled()
	if f.Timeout != 20*time.Minute || f.Retries != 3 || f.RetryDelay != 5*time.Minute || f.MaxRetryDelay != time.Hour {
		t.Errorf("defaults: %+v", f)
	}
	if f = (Manifest{Retries: -1, Timeout: NoTimeout}).filled(); f.Retries != 0 || f.Timeout != NoTimeout {
		t.Errorf("none: %+v", f)
	}
}

func TestOccurrences(t *testing.T) {
	t.Parallel()
	from, until := at("2026-03-01T00:00:00Z"), at("2026-03-02T00:00:00Z")
	noon := []Exclusion{{Of: Window{TimeOfDay{12, 0, 0}, TimeOfDay{13, 0, 0}}}}
	for _, c := range []struct {
		m    Manifest
		want int
	}{
		{Manifest{When: Cron("0 * * * *", "UTC")}, 24}, // midnight belongs to the day that begins
		{Manifest{When: Every(time.Hour)}, 24},
		{Manifest{When: Every(10 * time.Minute), Exclude: noon}, 138},
		{Manifest{When: Every(time.Hour), Expires: at("2026-03-01T10:00:00Z")}, 10},
		{Manifest{When: Every(time.Second), Expires: at("2026-03-01T00:01:00Z")}, 60},
		{Manifest{When: Once(from)}, 1},
		{Manifest{When: Once(until)}, 0},
		{Manifest{When: After("x")}, 0},
	} {
		due, err := Occurrences(valid(c.m), from, until)
		if err != nil || len(due) != c.want {
			t.Errorf("%+v: %d due times, %v, want %d", c.m.When, len(due), err, c.want)
		}
	}
	_, err := Occurrences(valid(Manifest{When: Cron("* * * * * *", "UTC")}), from, from.AddDate(9, 0, 0))
	if !errors.Is(err, ErrTooMany) {
		t.Errorf("too many: %v", err)
	}
	if _, err := Next(valid(Manifest{When: Every(time.Second)}), from, MaxOccurrences+1); err == nil {
		t.Error("Next gave more than the most")
	}
	if _, err := Next(Manifest{}, from, 1); err == nil {
		t.Error("Next gave due times of a manifest with faults")
	}
}
