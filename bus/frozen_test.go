package bus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// standStill lets a process freeze while it waits for the answer to a statement, with its connections open, like
// SIGSTOP or a lost network. When begun is closed the server has answered, and the process sends nothing more until
// release is called, by the test or at its end.
func standStill(
	t *testing.T, proxy *faultproxy.Proxy, statement string,
) (begun <-chan struct{}, release func()) {
	stands, ended := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(ended) })
	t.Cleanup(release)
	still := faultproxy.Pause(func() { <-ended })
	proxy.Set(faultproxy.Fault{Statement: statement, N: 1, When: faultproxy.After, Do: faultproxy.Pause(func() {
		proxy.Set(faultproxy.Fault{Statement: "renew", Do: still}, faultproxy.Fault{Statement: "relay_look", Do: still})
		close(stands)
		<-ended
	})})
	return stands, release
}

// A process that freezes in the middle of an Ingest has ids locked. The broker delivers its messages to other
// processes, which must not wait until it comes back, or until an operator ends it.
func TestIngestWaitsForNobodyWhoStandsStill(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	frozen, proxy := w.proxied()
	begun, _ := standStill(t, proxy, "claim_received")
	id := newID(t).String()
	ctx, giveUp := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := frozen.Ingest(ctx, outbox.IngestOptions{From: "payments", Endpoint: "notes"}, arrival(id, "1"))
		failed <- err
	}()
	<-begun
	within, cancel := context.WithTimeout(t.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	arrived, err := w.bus.Ingest(within, outbox.IngestOptions{From: "payments", Endpoint: "notes"}, arrival(id, "1"))
	if err != nil || arrived[0].State != outbox.Accepted {
		t.Errorf("%v, %v, want it to be accepted while somebody stands still with it", arrived, err)
	}
	giveUp()
	if err := <-failed; err == nil {
		t.Error("the one that stood still has it too")
	}
	w.want(1, `SELECT count(*) FROM `+w.queue("notes"))
}

// A relay that freezes while it settles has its lease's row locked. A second process takes over all the same.
func TestFrozenRelayIsTakenOver(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	frozen, proxy := w.proxied()
	begun, release := standStill(t, proxy, "relay_delete")
	o := soonRelayed()
	o.Keep = time.Hour
	w.runRelay(w.relay(frozen, o, (&abroad{}).forward))
	ids := w.sendCrossed(3)
	<-begun
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.until("another has relayed them", func() bool { return len(a.ids()) == len(ids) })
	w.untilEmpty("border")
	release() // a frozen relay takes half a minute to end
}

// A server that disappears leaves the listening connection open on the client. Other processes consider a process dead
// if its row records a lock that no session holds, so it must not trust that connection for long.
func TestListenerNoticesAServerThatIsSilent(t *testing.T) {
	w := newWorld(t, bus.Options{})
	b, proxy := w.proxied()
	w.install("notes", bus.HandleTx(hears))
	w.startOn(b, "notes", bus.EndpointOptions{}, bus.HandleTx(hears))
	w.until("it listens", func() bool { return proxy.Seen()["lock_session"] == 1 })
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	proxy.Set(faultproxy.Fault{Statement: "still_there", N: 1, Do: faultproxy.Pause(func() { <-ended })})
	w.untilWithin(40*time.Second, "it listens anew", func() bool { return proxy.Seen()["lock_session"] == 1 })
}

// The same holds for a worker that takes messages or loads instances: it must not wait until the operating system gives
// the connection up, which may take a quarter of an hour.
func TestWorkerNoticesAServerThatIsSilent(t *testing.T) {
	for _, statement := range []string{"take", "load_by_key"} {
		t.Run(statement, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			b, proxy := w.proxied()
			ended := make(chan struct{})
			t.Cleanup(func() { close(ended) })
			def := tallies(saga.Optimistic, nil)
			w.install("tallies", bus.Saga(def))
			w.startOn(b, "tallies", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
			w.until("it takes", func() bool { return proxy.Seen()["take"] > 0 })
			proxy.Set(faultproxy.Fault{Statement: statement, N: 1, Do: faultproxy.Pause(func() { <-ended })})
			w.send(add{Key: "7"})
			w.untilWithin(70*time.Second, "it takes on another connection", func() bool {
				return proxy.Seen()["take"] > 1 // the first take is without answer, or preceded the load without answer
			})
		})
	}
}
