package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
)

// A sender may write any text into its headers. A copy that is put back without its run has the same values as before,
// and is still a header.
func TestReplayedHeaderSaysWhatItSaid(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	const fire = `"edda-manifest":"m","edda-run":"0198c0de-0000-7000-8000-000000000001",` +
		`"edda-fire-due":"2026-01-01T00:00:00Z"`
	w.exec(`INSERT INTO edda.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
		SELECT r.slot, 'border', now() - interval '1 minute', gen_random_uuid(), now(), $1, $2, '{}' FROM edda.ring r
		WHERE r.name = 'outbox'`,
		crossed{}.Kind(), []byte(`{"edda-from":"a\",\"edda-intent\":\"timeout","mine":"\"",`+fire+`}`))
	done, err := w.operator().Replay(t.Context(), operate.ReplayOptions{Filter: outbox.KeptFilter{Endpoint: "border",
		Until: time.Now()}})
	if err != nil || done.Messages != 1 {
		t.Fatalf("%+v: %v", done, err)
	}
	if got, want := w.text(`SELECT convert_from(header, 'UTF8') FROM `+w.queue("border")),
		`{"edda-from":"a\",\"edda-intent\":\"timeout","mine":"\""}`; got != want {
		t.Errorf("the header is\n%s, want\n%s", got, want)
	}
}
