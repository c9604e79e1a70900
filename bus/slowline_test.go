package bus_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// slowLine is a connection that sends about a megabyte in a second.
type slowLine struct {
	net.Conn
	ctx context.Context
}

func (c slowLine) Write(b []byte) (sent int, err error) {
	const piece, pause = 128 << 10, 100 * time.Millisecond
	for sent < len(b) && err == nil {
		if len(b) > piece {
			_ = run.Sleep(c.ctx, pause)
		}
		n := 0
		n, err = c.Conn.Write(b[sent:min(len(b), sent+piece)])
		sent += n
	}
	return sent, err
}

func (w *world) onASlowLine() {
	w.t.Helper()
	w.throughConnections(func(conn net.Conn) net.Conn { return slowLine{conn, context.WithoutCancel(w.t.Context())} })
}

// large is a body that takes longer to send than a transaction may be idle.
var large = []byte(`"` + strings.Repeat("x", 9<<20) + `"`)

// The server counts the reading of a statement as idle time of the transaction. It ended transactions with a large
// message on a slow line, again and again.
func TestLargeMessageArrivesOverASlowLine(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	w.onASlowLine()
	// it is larger than a message may be
	if got := states(w.arrive("notes", outbox.IngestMessage{ID: newID(t).String(), Kind: "order.shipped",
		Body: large})); got != "dead" {
		t.Error(got)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE body = $1`, large)
}

func TestRelayBuriesALargeMessageOverASlowLine(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(1)
	if _, err := w.owner.Exec(t.Context(), `UPDATE `+w.schema+`.queue_1 SET body = $1`, large); err != nil {
		t.Fatal(err)
	}
	w.onASlowLine()
	a := &abroad{}
	a.set(func(*saga.Delivery) error { return saga.Permanent(errors.New("not here")) })
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND body = $2`, ids[0], large)
	if n := len(a.ids()); n != 0 {
		t.Errorf("%d messages arrived", n)
	}
}
