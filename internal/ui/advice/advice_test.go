package advice

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/operate"
)

// healthy is a saga that nothing is to be said about.
func healthy() operate.SagaCounters {
	return operate.SagaCounters{
		Endpoint: "orders", Saga: "order", Store: "optimistic", Concurrency: 3, BatchMax: 500,
		Messages: operate.MessageCounters{Taken: 10_100, Steps: 10_000, Conflicts: 100},
		Saves: operate.SaveCounters{
			Batches: 1000, Instances: 9000, Writes: 9000, Starts: 3000, Lost: 100, StateBytes: 9000 * 300,
		},
		Waiting: operate.WaitCounters{Waits: 10, Timeouts: 9, Wait: time.Second, Turns: 50, Turn: time.Second},
		Times: operate.TimeCounters{
			Handler: 100 * time.Millisecond, Critical: 50 * time.Second, Batch: 10 * time.Second,
		},
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	queue := operate.QueueInfo{Endpoint: "orders"}
	behind := operate.QueueInfo{Endpoint: "orders", Ready: 70_000, Lag: 9 * time.Second}
	plain := operate.SagaCounters{
		Endpoint: "orders", Messages: operate.MessageCounters{Steps: 400, Taken: 400},
		Times: operate.TimeCounters{Critical: 4 * time.Second, Batch: time.Second},
	}
	for _, c := range []struct {
		name   string
		change func(c *operate.SagaCounters)
		queue  operate.QueueInfo
		others []operate.SagaCounters
		want   []string // symptoms
		says   []string
	}{
		{"healthy", func(*operate.SagaCounters) {}, queue, nil, nil, nil},
		{"healthy and behind", func(*operate.SagaCounters) {}, behind, []operate.SagaCounters{plain}, nil, nil},
		{"nothing was done", func(c *operate.SagaCounters) {
			*c = operate.SagaCounters{Endpoint: "orders",
				Saga: "order"}
		},
			queue, nil, nil, nil},
		{"too little to go by", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Steps,
				c.Messages.Conflicts = 99, 9, 90
		}, queue, nil,
			nil, nil},
		// S4-21: a high number of retries from conflicts.
		{"conflicts", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue, nil, []string{"conflicts"},
			[]string{"20.0 % of its attempts", "(2500 of 12500)", "saga.Pessimistic"}},
		{"conflicts at the threshold", func(c *operate.SagaCounters) {
			c.Messages.Steps, c.Messages.Conflicts = 9800,
				200
		}, queue, nil,
			[]string{"conflicts"}, nil},
		{"conflicts below it", func(c *operate.SagaCounters) { c.Messages.Steps, c.Messages.Conflicts = 9801, 199 },
			queue, nil, nil, nil},
		{"conflicts of the pessimistic store",
			func(c *operate.SagaCounters) { c.Store, c.Messages.Conflicts = "pessimistic", 2500 },
			queue, nil, []string{"conflicts"},
			[]string{"has the Pessimistic store already"}},
		{"starts race", func(c *operate.SagaCounters) { c.Saves.LostStarts = 1000 }, queue, nil,
			[]string{"start-races"},
			[]string{"25.0 % of its starts came second (1000 of 4000)", "one earlier message"}},
		// S4-22: retries exhausted, messages in the error queue.
		{"dead of conflicts", func(c *operate.SagaCounters) { c.Messages.Dead, c.Messages.DeadConflicts = 5, 3 }, queue,
			nil,
			[]string{"conflict-deaths"},
			[]string{"3 messages are dead letters", "edda dead retry", "EndpointOptions.MaxConflicts"}},
		{"dead of something else", func(c *operate.SagaCounters) { c.Messages.Dead = 5 }, queue, nil, nil, nil},
		// S4-23: timeouts while waiting for the same lock.
		{"lock timeouts", func(c *operate.SagaCounters) {
			c.Waiting.Waits, c.Waiting.Timeouts, c.Waiting.Wait = 100, 50, 4*time.Second
		}, queue,
			nil, []string{"lock-timeouts"},
			[]string{"50.0 % of its waits", "(50 of 100, 40ms on average)", "saga.Options.LockWait"}},
		// S4-24: critical time high compared with the handlers' own.
		{"critical time", func(c *operate.SagaCounters) { c.Times.Critical = 30_000 * time.Second }, queue, nil,
			[]string{"critical-time"},
			[]string{"a message takes 3s from its send", "handler has 10µs and its batch 10ms",
				"The queue is short now"}},
		{"critical time with a long queue", func(c *operate.SagaCounters) { c.Times.Critical = 30_000 * time.Second },
			behind,
			nil, []string{"critical-time"},
			[]string{"70000 messages are ready now. Look at what the sessions",
				"few are active, add workers or servers", "the same rows of yours, and more servers would wait " +
					"with them"}},
		{"critical time with a little contention",
			func(c *operate.SagaCounters) { c.Times.Critical, c.Messages.Conflicts = 30_000*time.Second, 300 }, behind,
			nil,
			[]string{"conflicts", "critical-time"},
			[]string{"contention above costs 20.0 % of the work at most, which does not explain that", "query 1"}},
		{"critical time for contention", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Messages.Conflicts = 30_000*time.Second,
				10_000
		}, behind, nil, []string{"conflicts", "critical-time"},
			[]string{"What keeps it there is the contention above"}},
		{"critical time of slow handlers", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Times.Handler = 30_000*time.Second, 10_000*time.Second
		}, queue, nil, []string{"slow-handler"}, []string{"its handlers take 1s on average", "plain handler"}},
		// S4-25: both rise, and nothing is saturated: the time goes into waiting for each other.
		{"waiting", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Waiting.Wait, c.Waiting.Turn = 5000*time.Second, 7*time.Second,
				time.Second
		}, queue, nil, []string{"waiting"},
			[]string{"80.0 % of their time", "(7s for those of other servers, 1s for those of their own)",
				"where they are busy, waits are long because everything is", "more processors, connections or " +
					"servers do not help", "in order or partitioned by key"}},
		{"waiting that nobody feels", func(c *operate.SagaCounters) { c.Waiting.Turn = 9 * time.Second }, queue, nil,
			nil, nil},
		{"put down here", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Queued, c.Concurrency = 30_000,
				20_000, 9
		}, queue,
			nil, []string{"put-down"},
			[]string{"66.7 % of the messages", "(20000 of 30000)", "Concurrency of 2 instead of 9"}},
		{"put down here, of few workers", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Queued, c.Concurrency = 30_000, 20_000,
				2
		}, queue, nil, []string{"put-down"},
			[]string{"more workers would not help"}},
		{"put down for other servers", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Busy = 30_000,
				20_000
		}, queue, nil,
			[]string{"put-down"},
			[]string{"fewer servers"}},
		{"large states", func(c *operate.SagaCounters) { c.Saves.StateBytes = c.Saves.Writes * 100 << 10 }, queue, nil,
			[]string{"large-state"},
			[]string{"100 KiB on average", "a reference"}},
		{"full batches", func(c *operate.SagaCounters) { c.Saves.Batches = 20 }, behind, nil, []string{"full-batches"},
			[]string{"(500 messages of 500)", "9s behind", "BatchMax at 1000"}},
		{"full batches and no lag", func(c *operate.SagaCounters) { c.Saves.Batches = 20 }, queue, nil, nil, nil},
		{"one hot instance", func(c *operate.SagaCounters) { c.Saves.Instances, c.Messages.Conflicts = 50, 2500 },
			queue, nil,
			[]string{"conflicts", "hot-instance"},
			[]string{"200 messages for one instance", "√n sagas", "docs/guide/hot-sagas.md"}},
		{"one hot instance, at ease", func(c *operate.SagaCounters) { c.Saves.Instances = 50 }, queue, nil, nil, nil},
		{"contended among others", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue,
			[]operate.SagaCounters{plain},
			[]string{"conflicts", "neighbours"},
			[]string{"90.9 % of the time of endpoint orders", "plain handlers (400 messages, critical time 10ms)",
				"an endpoint of its own"}},
		{"contended with others elsewhere", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue,
			[]operate.SagaCounters{{Endpoint: "mail", Messages: operate.MessageCounters{Steps: 7}}},
			[]string{"conflicts"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one := healthy()
			c.change(&one)
			got := judge(append([]operate.SagaCounters{one}, c.others...),
				[]operate.QueueInfo{{Endpoint: "mail", Ready: 1 << 20, Lag: time.Hour}, c.queue})[0]
			var symptoms, said []string
			for _, f := range got.findings {
				symptoms, said = append(symptoms, f.symptom), append(said, f.says)
				if f.value < f.threshold || f.number == "" {
					t.Errorf("%s: %v does not reach %v", f.symptom, f.value, f.threshold)
				}
			}
			if !slices.Equal(symptoms, c.want) {
				t.Errorf("found %v, want %v", symptoms, c.want)
			}
			says(t, strings.Join(said, "\n"), c.says...)
		})
	}
}

// Each rule must have a case above, and a line of the page for users.
func TestEveryRuleIsExplained(t *testing.T) {
	t.Parallel()
	page := readPage(t, "../../../docs/guide/hot-sagas.md")
	for _, r := range rules {
		if !strings.Contains(page, "| `"+r.symptom+"` |") {
			t.Errorf("docs/guide/hot-sagas.md has no line for %s", r.symptom)
		}
		if want := fmt.Sprintf("%.3g", r.threshold); !strings.Contains(page, want) {
			t.Errorf("docs/guide/hot-sagas.md does not say from when on %s is said: %s", r.symptom, want)
		}
	}
}

// An endpoint of sagas alone has messages that reach no handler, and no plain handler.
func TestAdviceSpeaksOfHandlersThatAreThere(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int64]string{
		0: "messages of endpoint orders that no handler has handled: taken 500 times, tried again 490 times, 3 " +
			"dead letters.",
		200: "plain handlers of endpoint orders: nothing to change. 200 messages",
	} {
		a := judge([]operate.SagaCounters{{
			Endpoint: "orders", Messages: operate.MessageCounters{Taken: 500, Steps: steps, Retries: 490, Dead: 3},
		}},
			nil)[0]
		says(t, fmt.Sprint(a.lines()), want)
	}
}

// The names of JSON are promised. Package view has the others.
func TestPageNamesEveryFieldOfAdvice(t *testing.T) {
	t.Parallel()
	_, line, found := strings.Cut(readPage(t, "../../../docs/reference/cli.md"), "| `advise` | `sagas`")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatal("docs/reference/cli.md has no line for the fields of advise")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[advisedJSON]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !strings.Contains(line, "`"+name+"`") {
			t.Errorf("the line of advise has not the field %s", name)
		}
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// says refuses a text that has not all of the parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it says\n%s\nand not %q", text, part)
		}
	}
}
