//go:build bouncer

package bouncer_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

var loadFor = flag.Duration("load", 20*time.Second, "how long TestTwoProcessesShareFourSessions sends")

type tick struct{}
type move struct {
	Key string
	N   int
}
type moved struct {
	Key string
	N   int
}
type strict struct {
	Key string
	N   int
}

func (tick) Kind() string   { return "load.tick" }
func (move) Kind() string   { return "load.move" }
func (moved) Kind() string  { return "load.moved" }
func (strict) Kind() string { return "load.strict" }

// purse counts what it was sent, and says so each time.
type purse struct{ N int }

func purses(store saga.Store, name string) *saga.Definition {
	return saga.Define(name, saga.Options{Store: store},
		saga.StartedBy(func(m move) string { return m.Key }, func(s *purse, ctx *saga.Context, _ move) error {
			s.N++
			ctx.Send(moved{Key: name + ctx.Key(), N: s.N})
			return nil
		}))
}

// loadParts are what a worker hosts. Handlers fail now and then; what they have written is to be gone then.
func loadParts(b *bus.Bus, effect string) []func() (edda.Runner, error) {
	now := func(recoverability.Failure) recoverability.Decision {
		return recoverability.RetryIn(20 * time.Millisecond)
	}
	o := bus.EndpointOptions{Poll: quickly, Policy: now, Lease: 3 * time.Second, MaxCrashes: 1000}
	write := func(ctx *bus.Context, tx pgx.Tx, key string, n int) error {
		if _, err := tx.Exec(ctx, "INSERT INTO "+effect+" (key, n) VALUES ($1, $2)", key, n); err != nil {
			return err
		}
		if rand.IntN(20) == 0 {
			return errors.New("now and then")
		}
		return nil
	}
	endpoint := func(name string, o bus.EndpointOptions, parts ...bus.Part) func() (edda.Runner, error) {
		return func() (edda.Runner, error) { return bus.NewEndpoint(b, name, o, parts...) }
	}
	ordered, limited := o, o
	ordered.Ordered, limited.ClusterConcurrency = bus.Strict, 2
	return []func() (edda.Runner, error){
		endpoint("pessimistic", o, bus.Saga(purses(saga.Pessimistic, "pessimistic"))),
		endpoint("optimistic", o, bus.Saga(purses(saga.Optimistic, "optimistic"))),
		endpoint("moves", limited, bus.HandleTx(
			func(ctx *bus.Context, tx pgx.Tx, m moved) error { return write(ctx, tx, m.Key, m.N) }),
			bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ tick) error {
				return write(ctx, tx, ctx.Info().Fire.Run.String(), 0)
			})),
		endpoint("strict", ordered, bus.Handle(func(ctx *bus.Context, m strict) error {
			ctx.Send(moved(m))
			return nil
		}, bus.KeyedBy(func(m strict) string { return m.Key }))),
		func() (edda.Runner, error) {
			return bus.NewPartitioned(b, "parts",
				bus.PartitionOptions{Partitions: 2, Lease: 3 * time.Second,
					Endpoint: bus.EndpointOptions{Poll: quickly, MaxCrashes: 1000}},
				bus.Saga(purses(saga.Optimistic, "parts")))
		},
	}
}

// Two processes do a bit of everything, in four sessions; one of them is killed twice, and started again. Each message
// has its effect once, those of a purse in one line of numbers, and nothing is logged that the kills and the handlers'
// own failures do not explain.
func TestTwoProcessesShareFourSessions(t *testing.T) {
	w := newWorld(t)
	first, victim := w.worker(), w.worker()
	w.await("the endpoints", "7", "SELECT count(*)::text FROM :schema.queue")
	w.await("the subscriptions", "3", "SELECT count(DISTINCT endpoint)::text FROM :schema.subscription s JOIN "+
		":schema.queue q ON q.id = s.queue WHERE s.kind = 'load.move'")
	logs := []*lines{first.said, victim.said}
	end, kills := time.Now().Add(*loadFor), 0
	n := 0
	for ; time.Now().Before(end); n++ {
		key := fmt.Sprint(n % 5)
		if _, err := w.bus.Publish(t.Context(), move{Key: key, N: n}); err != nil {
			t.Fatal(err)
		}
		if err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			_, err := w.bus.SendTx(t.Context(), tx, strict{Key: "strict" + key, N: n})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if part := 3 - int(time.Until(end)*3 / *loadFor); part > kills+1 && kills < 2 {
			kills++
			_ = victim.end(syscall.SIGKILL)
			victim = w.worker()
			logs = append(logs, victim.said)
		}
	}
	w.await("the effects", fmt.Sprintf("%d of %[1]d", 4*n),
		`SELECT count(DISTINCT (key, n)) || ' of ' || count(*) FROM :schema.effect
			WHERE key ~ '^(pessimistic|optimistic|parts|strict)'`)
	w.await("purses without gaps", "15", `SELECT count(*)::text FROM (SELECT key FROM :schema.effect
		WHERE key ~ '^(pessimistic|optimistic|parts)'
		GROUP BY key HAVING max(n) = count(*) AND min(n) = 1) x`)
	w.await("an effect of each run", "true", `SELECT ((SELECT count(*) FROM :schema.run
		WHERE state = 'succeeded') > 0 AND
		(SELECT count(*) FROM :schema.run WHERE state = 'succeeded') = (SELECT count(*) FROM :schema.effect
		WHERE n = 0 AND key ~ '-.*-'))::text`)
	for _, p := range []*worker{first, victim} {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("a worker: %v\n%s", err, strings.Join(p.said.all(), "\n"))
		}
	}
	if dead := w.text("SELECT count(*)::text FROM :schema.dead_letter"); dead != "0" {
		t.Errorf("%s dead letters\n%s", dead, w.story())
	}
	for _, said := range logs {
		for _, line := range said.all() {
			if !explained(line) {
				t.Errorf("a worker says: %s", line)
			}
		}
	}
	t.Logf("%d messages and %d kills", 2*n, kills)
}

// explained are the lines that kills, and nothing else, are the reason of.
func explained(line string) bool {
	for _, text := range []string{"a process died", "quarantine", "a claim was lost"} {
		if strings.Contains(line, "edda: "+text) {
			return true
		}
	}
	return line == ""
}
