package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// emitters handle a job and send one called, each in a different kind of endpoint, and run these statements.
var emitters = map[string]struct {
	part       func(slow time.Duration) bus.Part
	statements []string
}{
	"batch": {func(time.Duration) bus.Part {
		return bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m job) error { ctx.Send(called{N: m.N}); return nil })
	}, []string{"take", "run_check", "insert", "delete", "run_end", "commit"}},
	"saga": {func(time.Duration) bus.Part {
		return bus.Saga(saga.Define("worker", saga.Options{}, saga.StartedBy(func(m job) string { return m.Key },
			func(_ *nothing, ctx *saga.Context, m job) error {
				ctx.Send(called{N: m.N})
				ctx.Complete()
				return nil
			})))
	}, []string{"run_check", "load_by_key", "start", "end_started", "delete", "run_end", "commit"}},
	"leased": {func(slow time.Duration) bus.Part {
		return bus.Handle(func(ctx *bus.Context, m job) error {
			<-time.After(slow)
			ctx.Send(called{N: m.N})
			return nil
		})
	}, []string{"claim", "run_check", "run_beat", "finish", "insert", "run_end", "commit"}},
}

// At whatever statement a connection breaks, before it or after the server has completed it: the run ends once,
// together with the effects of its message, which happen once.
func TestRunEndsOnceAtEveryBreak(t *testing.T) {
	t.Parallel()
	for name, e := range emitters {
		for _, statement := range e.statements {
			t.Run(name+" "+statement, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				keep(w)
				slow := time.Duration(0)
				if statement == "run_beat" {
					slow = 2 * time.Second // more than a third of the lease
				}
				process, proxy := w.proxied()
				w.startOn(process, "callers", bus.EndpointOptions{Lease: 5 * time.Second, Poll: 50 * time.Millisecond},
					e.part(slow))
				sent := 0
				for _, fault := range []faultproxy.Fault{
					{When: faultproxy.Before}, {When: faultproxy.After}, {Do: faultproxy.DropReply},
					{Do: faultproxy.Swallow},
				} {
					for n := range 2 {
						fault.Statement, fault.N = statement, n+1
						strike(t, proxy, fault, func() {
							for range 3 {
								w.fire(job{Key: string(rune('a' + sent)), N: sent})
								sent++
							}
							w.wantKeptOnce(sent)
						})
					}
				}
				w.want(sent, `SELECT count(*) FROM edda.run WHERE state = 'succeeded'`)
				w.want(sent, `SELECT count(*) FROM edda.run_attempt WHERE outcome = 'succeeded'`)
				w.want(sent, `SELECT successes FROM edda.manifest`)
			})
		}
	}
}
