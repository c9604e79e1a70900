package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// provider is a scheduler whose time a test moves. Verbs about a run apply to the manifest's last message.
type provider interface {
	advance(d time.Duration) []shot
	down(d time.Duration)
	tell(verb, manifest string) // verb is a key of verbs
}

// shot is a message that was sent; its times count from the start.
type shot struct {
	manifest string
	attempt  int
	due, at  time.Duration
}

// String formats a shot as name@due, followed by the attempt if it is not the first, and by the delay of the send.
// Times are rounded to ten seconds, because the clock of a database runs during a test.
func (s shot) String() string {
	text := s.manifest + "@" + s.due.Round(tick).String()
	if s.attempt > 1 {
		text += fmt.Sprintf("#%d", s.attempt)
	}
	if late := s.at.Round(tick) - s.due.Round(tick); late != 0 {
		text += "+" + late.String()
	}
	return text
}

const tick = 10 * time.Second

// scenario is a story that every provider plays with the same result. A line is a verb, its object, and after an arrow
// the firings:
//
//	advance 10m -> poll@0s poll@5m0s      time passes while a scheduler runs
//	down 10m                              time passes while no scheduler runs
//	succeeded poll                        the last run of poll ends; failed, dead and discarded are other outcomes
//	cancel, retry, pause, resume, trigger, activate
type scenario struct {
	name      string
	manifests func(start time.Time) []scheduler.Manifest
	story     string
}

func poll(m scheduler.Manifest) func(time.Time) []scheduler.Manifest {
	m.Name, m.Message = "poll", saga.Raw{Name: "poll", Body: []byte("{}")}
	if m.When == nil {
		m.When = scheduler.Every(5 * time.Minute)
	}
	return func(time.Time) []scheduler.Manifest { return []scheduler.Manifest{m} }
}

func manifest(name string, when scheduler.When) scheduler.Manifest {
	return scheduler.Manifest{Name: name, When: when, Message: saga.Raw{Name: name, Body: []byte("{}")}}
}

var contract = []scenario{
	{"an interval stays on its grid", poll(scheduler.Manifest{}), `
		advance 0s -> poll@0s
		advance 12m ->
		succeeded poll
		advance 0s -> poll@10m0s+2m0s
		succeeded poll
		advance 8m -> poll@15m0s
		succeeded poll
		advance 5m -> poll@20m0s`},
	{"skip: what is older than a minute", poll(scheduler.Manifest{Misfire: scheduler.MisfireSkip}), `
		advance 0s -> poll@0s
		succeeded poll
		down 182m
		advance 0s ->
		advance 3m -> poll@3h5m0s
		succeeded poll
		down 175m30s
		advance 0s -> poll@6h0m0s+30s`},
	{"once: the last that was missed", poll(scheduler.Manifest{}), `
		advance 0s -> poll@0s
		succeeded poll
		down 182m
		advance 1m -> poll@3h0m0s+2m0s
		succeeded poll
		advance 2m -> poll@3h5m0s`},
	{"all: each of them, one after the other", poll(scheduler.Manifest{Misfire: scheduler.MisfireAll}), `
		down 12m
		advance 0s -> poll@0s+12m0s
		advance 1m ->
		succeeded poll
		advance 0s -> poll@5m0s+8m0s
		succeeded poll
		advance 0s -> poll@10m0s+3m0s
		succeeded poll
		advance 2m -> poll@15m0s`},
	{"all, with overlap, no more than two", poll(scheduler.Manifest{Misfire: scheduler.MisfireAll, MisfireUp: 2,
		Overlap: true}), `
		down 32m
		advance 0s -> poll@25m0s+7m0s poll@30m0s+2m0s
		advance 8m -> poll@35m0s poll@40m0s`},
	{"retries, and a dead run that holds its manifest", poll(scheduler.Manifest{Retries: 2, RetryDelay: time.Minute}), `
		advance 0s -> poll@0s
		failed poll
		advance 1m -> poll@0s#2+1m0s
		failed poll
		advance 90s ->
		advance 30s -> poll@0s#3+3m0s
		failed poll
		advance 10m ->
		retry poll
		advance 0s -> poll@0s#4+13m0s
		succeeded poll
		advance 0s -> poll@10m0s+3m0s
		dead poll
		advance 10m ->
		cancel poll
		advance 0s -> poll@20m0s+3m0s
		discarded poll
		advance 2m -> poll@25m0s`},
	{"a run that takes too long", poll(scheduler.Manifest{Timeout: 7 * time.Minute}), `
		advance 0s -> poll@0s
		advance 6m ->
		advance 1m -> poll@5m0s+2m0s
		advance 3m ->
		succeeded poll
		advance 0s -> poll@10m0s`},
	{"a run that is cancelled and wanted after all",
		poll(scheduler.Manifest{When: scheduler.OnDemand(), Timeout: time.Minute}), `
		trigger poll
		advance 0s -> poll@0s
		cancel poll
		advance 1m ->
		retry poll
		advance 0s -> poll@0s#2+1m0s
		advance 2m ->
		retry poll
		advance 0s -> poll@0s#3+3m0s
		failed poll
		cancel poll
		advance 1h ->`},
	{"a pause", poll(scheduler.Manifest{}), `
		advance 0s -> poll@0s
		succeeded poll
		pause poll
		advance 11m ->
		resume poll
		advance 0s -> poll@10m0s+1m0s`},
	{"it expires", func(start time.Time) []scheduler.Manifest {
		return poll(scheduler.Manifest{Overlap: true, Expires: start.Add(9 * time.Minute)})(start)
	}, `
		advance 20m -> poll@0s poll@5m0s`},
	{"a trigger waits for nothing", poll(scheduler.Manifest{When: scheduler.OnDemand()}), `
		advance 1h ->
		trigger poll
		advance 0s -> poll@1h0m0s
		trigger poll
		advance 1m -> poll@1h0m0s
		succeeded poll`},
	{"one time", func(start time.Time) []scheduler.Manifest {
		return []scheduler.Manifest{manifest("soon", scheduler.Once(start.Add(10*time.Minute))),
			manifest("past", scheduler.Once(start.Add(-time.Hour)))}
	}, `
		advance 0s -> past@-1h0m0s+1h0m0s
		succeeded past
		advance 15m -> soon@10m0s
		succeeded soon
		advance 100h ->`},
	{"one follows another", func(time.Time) []scheduler.Manifest {
		return []scheduler.Manifest{
			manifest("settle", scheduler.Every(time.Hour)), manifest("report", scheduler.After("settle")),
			manifest("mail", scheduler.After("report")),
		}
	}, `
		advance 0s -> settle@0s
		advance 2m ->
		succeeded settle
		advance 0s -> report@0s+2m0s
		succeeded report
		advance 1m -> mail@0s+2m0s
		advance 25m ->
		advance 33m -> settle@1h0m0s
		succeeded settle
		advance 0s -> report@1h0m0s+1m0s
		succeeded report
		advance 10m -> mail@1h0m0s+1m0s`},
	{"a failure has no followers", func(time.Time) []scheduler.Manifest {
		return []scheduler.Manifest{manifest("settle", scheduler.Every(time.Hour)),
			manifest("report", scheduler.After("settle"))}
	}, `
		advance 0s -> settle@0s
		dead settle
		advance 90m ->
		retry settle
		advance 0s -> settle@0s#2+1h30m0s
		succeeded settle
		advance 0s -> report@0s+1h30m0s settle@1h0m0s+30m0s`},
	{"a follower expires", func(start time.Time) []scheduler.Manifest {
		report := manifest("report", scheduler.After("settle"))
		report.Expires = start.Add(90 * time.Minute)
		return []scheduler.Manifest{manifest("settle", scheduler.Every(time.Hour)), report}
	}, `
		advance 0s -> settle@0s
		succeeded settle
		advance 0s -> report@0s
		succeeded report
		advance 1h -> settle@1h0m0s
		succeeded settle
		advance 0s -> report@1h0m0s
		succeeded report
		advance 1h -> settle@2h0m0s
		succeeded settle
		advance 10m ->`},
	{"a dormant one is activated", func(time.Time) []scheduler.Manifest {
		return []scheduler.Manifest{manifest("scan", scheduler.Every(time.Hour)),
			manifest("mend", scheduler.Dormant("scan"))}
	}, `
		advance 10m -> scan@0s
		activate mend
		activate mend
		advance 0s -> mend@0s+10m0s
		succeeded mend
		activate mend
		succeeded scan
		advance 0s -> mend@0s+10m0s
		advance 1h -> scan@1h0m0s`},
	{"the higher priority goes first", func(time.Time) []scheduler.Manifest {
		low, high := manifest("low", scheduler.Every(time.Hour)), manifest("high", scheduler.Every(time.Hour))
		high.Priority = 5
		return []scheduler.Manifest{low, high}
	}, `
		advance 0s -> high@0s low@0s`},
	{"declared as paused", poll(scheduler.Manifest{Paused: true}), `
		advance 1h ->
		resume poll
		advance 1h ->`},
}

// verbs are the verbs whose only argument is the name of a manifest.
var verbs = map[string]bool{
	"succeeded": true, "failed": true, "dead": true, "discarded": true, "cancel": true, "retry": true,
	"pause": true, "resume": true, "trigger": true, "activate": true,
}

// tellStory plays the scenario and compares the firings.
func (s scenario) tellStory(t *testing.T, p provider) {
	t.Helper()
	var told []string
	for line := range strings.Lines(s.story) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		told = append(told, line)
		words, want, _ := strings.Cut(line, "->")
		verb, object, _ := strings.Cut(strings.TrimSpace(words), " ")
		if verbs[verb] {
			p.tell(verb, object)
			continue
		}
		d, err := time.ParseDuration(object)
		if err != nil {
			t.Fatal(err)
		}
		if verb == "down" {
			p.down(d)
			continue
		}
		var got []string
		for _, shot := range p.advance(d) {
			got = append(got, shot.String())
		}
		if got, want := strings.Join(got, " "), strings.TrimSpace(want); got != want {
			t.Fatalf("%s\n\twant %s\n\tgot  %s", strings.Join(told, "\n"), want, got)
		}
	}
}
