package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
)

// callers is a leased endpoint behind a proxy: each call sends one called, and takes a moment if slow is set.
func (w *world) callers(lease time.Duration, slow *atomic.Int64) *faultproxy.Proxy {
	w.t.Helper()
	process, proxy := w.proxied()
	w.startOn(process, "callers", bus.EndpointOptions{Lease: lease, Poll: 50 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m call) error {
			if d := time.Duration(slow.Load()); d > 0 {
				<-time.After(d)
			}
			ctx.Send(called(m))
			return nil
		}))
	return proxy
}

func (w *world) wantKeptOnce(n int) {
	w.t.Helper()
	w.until("all calls are kept", func() bool { return w.count("SELECT count(DISTINCT n) FROM edda.kept") == n })
	w.untilEmpty("callers")
	w.untilEmpty("keepers")
	w.want(n, "SELECT count(*) FROM edda.kept")
}

// strike does work until the fault has struck, if the fault is for the first statement. A statement that the proxy
// passed on before it had the fault may do the work of the first round.
func strike(t *testing.T, proxy *faultproxy.Proxy, fault faultproxy.Fault, work func()) {
	t.Helper()
	proxy.Set(fault)
	work()
	for round := 1; fault.N == 1 && len(proxy.Fired()) == 0; round++ {
		if round == 5 {
			t.Fatalf("%v did not strike", fault)
		}
		work()
	}
}

// P1 and P2 for leased endpoints: at whatever statement a connection breaks, before it or after the server has
// completed it, no message is lost, and each message of a handler is written once.
func TestLeasedEndpointAtEveryBreak(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"claim", "extend", "held", "finish", "insert", "commit"} {
		t.Run(statement, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			keep(w)
			var slow atomic.Int64
			proxy := w.callers(time.Second, &slow)
			sent := 0
			for _, fault := range []faultproxy.Fault{
				{When: faultproxy.Before}, {When: faultproxy.After}, {Do: faultproxy.DropReply},
				{Do: faultproxy.Swallow},
			} {
				slow.Store(0)
				if statement == "extend" || statement == "held" {
					slow.Store(int64(900 * time.Millisecond))
				}
				for n := range 3 { // of commit: the commit of the claim, of the end, and of the next claim
					fault.Statement, fault.N = statement, n+1
					strike(t, proxy, fault, func() {
						for range 3 {
							w.send(call{N: sent})
							sent++
						}
						w.wantKeptOnce(sent)
					})
				}
			}
		})
	}
}

func TestLeasedEndpointWithRandomBreaks(t *testing.T) {
	w := newWorld(t, bus.Options{})
	keep(w)
	var slow atomic.Int64
	slow.Store(int64(2 * time.Millisecond))
	proxy := w.callers(3*time.Second, &slow)
	w.until("it claims", func() bool { return proxy.Seen()["claim"] > 0 })
	proxy.Random(0.05, faultproxy.DropReply)
	const n = 200
	for i := range n {
		w.send(call{N: i})
	}
	w.wantKeptOnce(n)
	if len(proxy.Fired()) < 3 {
		t.Errorf("only %v broke", proxy.Fired())
	}
}

// The connection of an extension breaks, and the row may have moved or not: the next extension looks for the claim at
// both places, and the handler runs once.
func TestExtensionOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultproxy.Fault{
		"rolled back": {Statement: "extend", N: 1, When: faultproxy.After},
		"committed":   {Statement: "commit", N: 2, Do: faultproxy.DropReply}, // the first is the claim's
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			var runs atomic.Int32
			process, proxy := w.proxied()
			w.startOn(process, "callers", bus.EndpointOptions{Lease: 9 * time.Second, Poll: time.Minute},
				bus.Handle(func(*bus.Context, call) error {
					runs.Add(1)
					<-time.After(4 * time.Second) // more than a third of the lease
					return nil
				}))
			proxy.Set(fault)
			w.send(call{})
			w.until("it runs", func() bool { return runs.Load() > 0 })
			w.untilEmpty("callers")
			if lost := eventsOf[event.ClaimLost](w); runs.Load() != 1 || len(lost) != 0 || len(proxy.Fired()) != 1 {
				t.Errorf("ran %d times, %d claims were lost, after %v", runs.Load(), len(lost), proxy.Fired())
			}
		})
	}
}

// The reply to the COMMIT of a finish is lost. The next try finds no message, and reports no lost claim.
func TestFinishOfUnknownOutcomeLosesNoClaim(t *testing.T) {
	w := newWorld(t, bus.Options{})
	keep(w)
	g := newGate(t)
	process, proxy := w.proxied()
	stop := w.startOn(process, "callers", bus.EndpointOptions{Lease: time.Minute, Poll: time.Minute},
		bus.Handle(func(ctx *bus.Context, m call) error {
			g.pass()
			ctx.Send(called(m))
			return nil
		}))
	w.send(call{})
	await(w, "the handler", g.came)
	proxy.Set(faultproxy.Fault{Statement: "commit", N: 1, Do: faultproxy.DropReply})
	g.open()
	w.wantKeptOnce(1)
	stop()
	if lost := eventsOf[event.ClaimLost](w); len(lost) != 0 || len(proxy.Fired()) != 1 {
		t.Errorf("%d claims were lost, after %v", len(lost), proxy.Fired())
	}
}
