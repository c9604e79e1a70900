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
	terms := &terms{ep: e}
	c := &claims{terms: terms, held: map[*claimed]struct{}{}, room: make(chan struct{}, 1)}
	m := &claimed{renewed: time.Now().Add(-950 * time.Millisecond)}
	c.held[m] = struct{}{}
	(&runner{terms: terms, claims: c}).handle(t.Context(), m)
	c.logLost()
	if len(c.held) != 0 || len(told) != 1 {
		t.Errorf("%d claims are held, and %v was told", len(c.held), told)
	}
}
