package eddaprom_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
)

// Messages from other systems are counted by their state, for each source and endpoint.
func TestMetricsTellOfIngests(t *testing.T) {
	t.Parallel()
	l := newLab(t, pgdev.Pool(t), eddaprom.Options{})
	l.endpoint(t)
	good := outbox.IngestMessage{ID: "1", Kind: "parcel", Body: []byte("{}")}
	for _, endpoint := range []string{"van", "van", ""} {
		if _, err := l.bus.Ingest(t.Context(), outbox.IngestOptions{From: "post", Endpoint: endpoint}, good,
			outbox.IngestMessage{Kind: "parcel"}, outbox.IngestMessage{ID: "2", Kind: "No Kind"}); err != nil {
			t.Fatal(err)
		}
	}
	l.expect(t, `
# HELP edda_ingested_unnamed_total Messages from other systems without an id: a second delivery is handled `+
		`as a new message.
# TYPE edda_ingested_unnamed_total counter
edda_ingested_unnamed_total{endpoint="",source="post"} 1
edda_ingested_unnamed_total{endpoint="van",source="post"} 2
# HELP edda_messages_ingested_total Messages from other systems, by result.
# TYPE edda_messages_ingested_total counter
edda_messages_ingested_total{endpoint="",source="post",state="accepted"} 2
edda_messages_ingested_total{endpoint="",source="post",state="dead"} 1
edda_messages_ingested_total{endpoint="",source="post",state="repeated"} 0
edda_messages_ingested_total{endpoint="",source="post",state="unwanted"} 0
edda_messages_ingested_total{endpoint="van",source="post",state="accepted"} 3
edda_messages_ingested_total{endpoint="van",source="post",state="dead"} 1
edda_messages_ingested_total{endpoint="van",source="post",state="repeated"} 2
edda_messages_ingested_total{endpoint="van",source="post",state="unwanted"} 0
`, "edda_messages_ingested_total", "edda_ingested_unnamed_total")
}

func TestMetricsTellOfRelays(t *testing.T) {
	t.Parallel()
	l := newLab(t, pgdev.Pool(t), eddaprom.Options{})
	l.metrics.Observe(event.RelayHeld{Endpoint: "border", Holding: true})
	for n := range 2 {
		l.metrics.Observe(event.Relayed{Endpoint: "border", Messages: 3 + n, Bytes: 100, Lag: time.Second,
			Forward: time.Millisecond})
	}
	l.expect(t, `
# HELP edda_messages_relayed_total Messages that a relay has published and deleted.
# TYPE edda_messages_relayed_total counter
edda_messages_relayed_total{endpoint="border"} 7
# HELP edda_relay_holding 1 while this process relays.
# TYPE edda_relay_holding gauge
edda_relay_holding{endpoint="border"} 1
# HELP edda_relayed_bytes_total Bytes of the bodies of relayed messages.
# TYPE edda_relayed_bytes_total counter
edda_relayed_bytes_total{endpoint="border"} 200
`, "edda_messages_relayed_total", "edda_relayed_bytes_total", "edda_relay_holding")
}
