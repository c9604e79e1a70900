package bus

import (
	"log/slog"
	"testing"
	"time"
)

// A process that stood still between a claim and its handler has nothing that it may run. It did not run it, nor did it
// give it up: the next extension found the row as it was, and kept the message for as long as the process lived.
func TestClaimThatIsNotTrustedIsGivenUp(t *testing.T) {
	t.Parallel()
	var told []Event
	b := &Bus{log: slog.New(slog.DiscardHandler), events: func(e Event) { told = append(told, e) }}
	e := &Endpoint{bus: b, name: "calls", options: EndpointOptions{Lease: time.Second}}
	l := &leased{Endpoint: e, held: map[*claimed]struct{}{}, room: make(chan struct{}, 1)}
	c := &claimed{renewed: time.Now().Add(-950 * time.Millisecond)}
	l.held[c] = struct{}{}
	l.handle(t.Context(), c)
	l.tell()
	if len(l.held) != 0 || len(told) != 1 {
		t.Errorf("%d claims are held, and %v was told", len(l.held), told)
	}
}
