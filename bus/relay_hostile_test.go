package bus_test

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// Whatever error the other side returns for a message, its fate is written, and the messages behind it are relayed.
func TestRelayRecordsHostileErrors(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	hostile := "no\x00\xff\u202e" + strings.Repeat("x", 1<<20)
	errs := []error{saga.Permanent(errors.New(hostile)), saga.Discard(hostile), saga.Discard(""),
		saga.Permanent(errors.New(""))}
	ids := w.sendCrossed(len(errs) + 1)
	a.set(func(d *saga.Delivery) error {
		for n, err := range errs {
			if d.Info.ID == ids[n] {
				return err
			}
		}
		return nil
	})
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	w.want(2, `SELECT count(*) FROM edda.dead_letter`)
	w.want(2, `SELECT count(*) FROM edda.discarded`)
	if got := a.ids(); len(got) != 1 || got[0] != ids[len(errs)] {
		t.Errorf("relayed %v", got)
	}
}

// Its options panic: an error whose methods panic, or a function that judges errors. The message has failed, and its
// fate is written.
func TestRelaySurvivesPanicsOfItsOptions(t *testing.T) {
	if pgdev.Apart(t) {
		return
	}
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	ids := w.sendCrossed(30) // enough go through behind the four
	a.set(func(d *saga.Delivery) error {
		switch d.Info.ID {
		case ids[1]:
			return errors.New("not taken")
		case ids[3]:
			return mine{}
		case ids[5]:
			return errNo
		case ids[7]:
			return exiting{}
		}
		return nil
	})
	o := soonRelayed()
	o.Permanent = func(err error) bool {
		switch err.Error() {
		case "not taken":
			panic("no such code")
		case "no":
			runtime.Goexit()
		}
		return false
	}
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.untilEmpty("border")
	if got, want := a.ids(), slices.Concat(ids[:1], ids[2:3], ids[4:5], ids[6:7], ids[8:]); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND reason = 'stuck'
		AND error LIKE 'not taken%RelayOptions.Permanent%panic: no such code'`, ids[1])
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND reason = 'stuck'
		AND error LIKE 'a mine%panic: it goes off'`, ids[3])
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND reason = 'stuck'
		AND error LIKE 'no%RelayOptions.Permanent%ended its goroutine%'`, ids[5])
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND reason = 'stuck'
		AND error LIKE 'an error of type bus_test.exiting%ended its goroutine%'`, ids[7])
}

// mine is an error whose method Is panics.
type mine struct{}

func (mine) Error() string { return "a mine" }

func (mine) Is(error) bool { panic("it goes off") }

// Whatever a sender sends, the transaction of Ingest commits: a batch that never can would be delivered for ever.
func TestIngestSurvivesHostileMessages(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	long := strings.Repeat("x", 70<<10)
	kinds := []string{"", "bad\x00kind", "bad\xffkind", "Bad Kind", long, "order.shipped"}
	ids := []string{"", "a\x00b", "a\xff", long, "00000000-0000-0000-0000-000000000000",
		"0198C0DE-0000-7000-8000-000000000001"}
	headers := []map[string]string{nil, {"a\x00": "b"}, {"a": "b\x00"}, {"\xff": "\xff"}, {"edda-intent": "\x00"},
		{"edda-from": "\x00"}, {"edda-from": long}, {"edda-version": "9"},
		{"EDDA-Instance": "x"}, {"edda-manifest": "m", "edda-run": "x"}, {"": ""}, {"a": long},
		{"watermill-uuid": "mine"}}
	for _, endpoint := range []string{"notes", ""} {
		for _, kind := range kinds {
			for _, id := range ids {
				var all []outbox.IngestMessage
				for n, header := range headers {
					m := outbox.IngestMessage{ID: id, Kind: kind, Header: header, Body: []byte("b")}
					if id != "" && len(id) != 36 {
						m.ID += strconv.Itoa(n)
					}
					all = append(all, m)
				}
				for range 2 {
					if _, err := w.bus.Ingest(t.Context(), outbox.IngestOptions{From: "hostile", Endpoint: endpoint},
						all...); err != nil {
						t.Fatalf("kind %.20q, id %.20q, endpoint %q: %v", kind, id, endpoint, err)
					}
				}
			}
		}
	}
	for _, body := range [][]byte{nil, make([]byte, 1<<20+1)} {
		if _, err := w.bus.Ingest(t.Context(), outbox.IngestOptions{From: "hostile", Endpoint: "notes"},
			outbox.IngestMessage{ID: newID(t).String(), Kind: "order.shipped", Body: body}); err != nil {
			t.Fatalf("%d bytes: %v", len(body), err)
		}
	}
}
