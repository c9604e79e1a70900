package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/saga"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

func TestAMessageCrossesUnchanged(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	sent := message.NewMessage("0198c0de-0000-7000-8000-000000000001", []byte("{\"é\": \"\x00\xff\"}"))
	sent.Metadata = message.Metadata{"edda_kind": "order.paid", jetstream.ConversationKey: "c1", "Case-Kept": "Grüße",
		"empty": ""}
	p := w.publisher(jetstream.PublisherOptions{})
	if err := p.Publish("orders", sent); err != nil {
		t.Fatal(err)
	}
	other := sent.Copy()
	other.UUID = "0198c0de-0000-7000-8000-000000000002"
	if err := p.Publish("orders", other, message.NewMessage("last", nil)); err != nil {
		t.Fatal(err)
	}
	messages, _ := w.subscribe("orders", jetstream.SubscriberOptions{})
	for _, want := range []*message.Message{sent, other} {
		got := w.receive(messages)
		got.Ack()
		if got.UUID != want.UUID || string(got.Payload) != string(want.Payload) ||
			!maps.Equal(got.Metadata, want.Metadata) {
			t.Errorf("sent %s %v %q\ngot  %s %v %q", want.UUID, want.Metadata, want.Payload, got.UUID, got.Metadata,
				got.Payload)
		}
	}
}

// Producers that do not use Watermill set no UUID header, and some set a header twice.
func TestAForeignMessageHasAnID(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	for _, m := range []*nats.Msg{
		{Subject: "orders", Header: nats.Header{"Twice": {"a", "b"}}},
		{Subject: "orders", Header: nats.Header{nats.MsgIdHdr: {"theirs"}}},
	} {
		if _, err := w.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	messages, _ := w.subscribe("orders", jetstream.SubscriberOptions{})
	for _, want := range []string{"orders:1", "theirs"} {
		m := w.receive(messages)
		m.Ack()
		if m.UUID != want {
			t.Errorf("the id is %q, want %q", m.UUID, want)
		}
	}
}

// A batch with a message that the stream refuses leaves no message behind, whether the client or the server detects it.
func TestABatchIsThereWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	w.stream("orders", func(c *natsjs.StreamConfig) { c.MaxMsgSize = 1000 })
	p := w.publisher(jetstream.PublisherOptions{})
	for name, bad := range map[string]*message.Message{
		"beyond max_msg_size": message.NewMessage("big", make([]byte, 2000)),
		"beyond max_payload":  message.NewMessage("huge", make([]byte, 9000)),
		"beyond max_payload with its headers": func() *message.Message {
			m := message.NewMessage("long", make([]byte, 8000))
			m.Metadata.Set("note", strings.Repeat("x", 300))
			return m
		}(),
		"a bad header": func() *message.Message {
			m := message.NewMessage("bad", nil)
			m.Metadata.Set("a name", "x")
			return m
		}(),
	} {
		batch := append(append(named("a", "b"), bad), named("c")...)
		if err := p.Publish("orders", batch...); err == nil {
			t.Errorf("%s: a batch was accepted", name)
		}
		if err := p.Publish("orders", bad); !jetstream.Unfit(err) || !isPermanent(err) {
			t.Errorf("%s: alone it is %v, want an error that no waiting helps", name, err)
		}
	}
	if held := w.held("orders"); len(held) != 0 {
		t.Errorf("the stream holds %v", held)
	}
	w.publish("orders", "a", "b", "c")
	if held := w.held("orders"); !slices.Equal(held, []string{"a", "b", "c"}) {
		t.Errorf("the stream holds %v", held)
	}
}

func isPermanent(err error) bool {
	var permanent *saga.PermanentError
	return errors.As(err, &permanent)
}

// A batch whose answer was lost is published again, alone or together with new messages, and each message is stored
// once.
func TestARepeatedBatchIsThereOnce(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	w.publish("orders", "a", "b", "c")
	w.publish("orders", "a", "b", "c")
	w.publish("orders", "b", "c", "d", "e")
	w.publish("orders", "e")
	if held := w.held("orders"); !slices.Equal(held, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("the stream holds %v", held)
	}
}

func TestPartsOfOneStreamAreOneBatch(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	p := w.publisher(jetstream.PublisherOptions{Parts: 4})
	if err := p.Publish("orders", named(numbers(100)...)...); err != nil {
		t.Fatal(err)
	}
	if held := w.held("orders"); !slices.Equal(held, numbers(100)) {
		t.Errorf("the stream holds %v", held)
	}
	s, err := w.js.Stream(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), natsjs.WithSubjectFilter("orders.*"))
	if err != nil || len(info.State.Subjects) != 4 {
		t.Errorf("the subjects are %v: %v", info.State.Subjects, err)
	}
}

// A stream that does not allow batches stores the messages one at a time, up to the first that it refuses.
func TestWithoutAtomicPublishAnErrorSaysWhereItStopped(t *testing.T) {
	w := newWorld(t)
	w.stream("orders", func(c *natsjs.StreamConfig) { c.AllowAtomicPublish, c.MaxMsgSize = false, 1000 })
	p := w.publisher(jetstream.PublisherOptions{})
	for range 2 { // the second time the refusal is recorded
		batch := append(named("a", "b"), message.NewMessage("big", make([]byte, 2000)), message.NewMessage("c", nil))
		err := p.Publish("orders", batch...)
		if err == nil || !strings.Contains(err.Error(), "message 3 of 4, and no later one") || !isPermanent(err) {
			t.Errorf("%v", err)
		}
	}
	if held := w.held("orders"); !slices.Equal(held, []string{"a", "b"}) {
		t.Errorf("the stream holds %v", held)
	}
	s, err := w.js.Stream(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for name := range m.Header {
		if strings.HasPrefix(name, "Nats-Batch") {
			t.Errorf("a message by itself has the header %s", name)
		}
	}
}

func TestWhileTheServerIsAwayPublishFailsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	p := w.publisher(jetstream.PublisherOptions{})
	w.restart(func() {
		for _, batch := range [][]string{{"lost"}, {"lost", "too"}} {
			begun := time.Now()
			if err := p.Publish("orders", named(batch...)...); err == nil || jetstream.Unfit(err) ||
				time.Since(begun) > 4*time.Second {
				t.Errorf("after %v: %v, want an error that passes, at once", time.Since(begun), err)
			}
		}
	})
	for end := time.Now().Add(soon); ; {
		if err := p.Publish("orders", named("a", "b")...); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if held := w.held("orders"); !slices.Equal(held, []string{"a", "b"}) {
		t.Errorf("the stream holds %v", held)
	}
}

func TestErrorsThatPassAreNotUnfit(t *testing.T) {
	w := newWorld(t)
	w.stream("full", func(c *natsjs.StreamConfig) { c.MaxBytes, c.Discard = 1000, natsjs.DiscardNew })
	p := w.publisher(jetstream.PublisherOptions{})
	for _, size := range []int{1, 2} {
		batch := make([]*message.Message, size)
		for n := range batch {
			batch[n] = message.NewMessage(numbers(2)[n], make([]byte, 2000))
		}
		if err := p.Publish("full", batch...); err == nil || jetstream.Unfit(err) {
			t.Errorf("a full stream and %d messages: %v", size, err)
		}
		if err := p.Publish("nowhere", batch...); !errors.Is(err, natsjs.ErrNoStreamResponse) || jetstream.Unfit(err) {
			t.Errorf("no stream and %d messages: %v", size, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := named("a")
	m[0].SetContext(ctx)
	if err := p.Publish("full", m...); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	if err := p.Publish("full", named(numbers(1001)...)...); err == nil ||
		!strings.Contains(err.Error(), "at most 1000") {
		t.Errorf("1001 messages: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Publish("full", named("a")...); !errors.Is(err, watermill.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Headers that begin with Nats- are instructions to the server, which a publisher sends with its own rights. The author
// of a message cannot set them: neither to empty the stream, nor to expire the message soon, nor to have it refused.
func TestHeadersOfAnAuthorAreNoOrdersToTheServer(t *testing.T) {
	w := newWorld(t)
	w.stream("orders", func(c *natsjs.StreamConfig) { c.AllowRollup, c.AllowMsgTTL = true, true })
	orders := map[string]string{
		"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Expected-Stream": "another", "nats-rollup": "all",
		"NATS-Msg-Id": "another", "Nats-Msg-Id": "another",
		"Nats-Expected-Last-Msg-Id": "another", "Nats-Batch-Id": "another", "Nats-Batch-Commit": "1", "nAtS-": "x",
	}
	for _, o := range []jetstream.PublisherOptions{{}, {NoMsgID: true}} {
		p := w.publisher(o)
		for _, size := range []int{1, 3} {
			var batch []*message.Message
			for n := range size {
				m := message.NewMessage(fmt.Sprintf("%v %d %d", o.NoMsgID, size, n), nil)
				for name, value := range orders {
					m.Metadata.Set(name, value)
				}
				m.Metadata.Set("Natsume", "kept")
				batch = append(batch, m)
			}
			if err := p.Publish("orders", batch...); err != nil {
				t.Error(err)
			}
		}
	}
	s, err := w.js.Stream(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil || info.State.Msgs != 8 {
		t.Fatalf("the stream has %d messages, want 8: %v", info.State.Msgs, err)
	}
	for place := range uint64(8) {
		m, err := s.GetMsg(t.Context(), place+1)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Natsume") != "kept" {
			t.Errorf("a header was lost: %v", m.Header)
		}
		for name, values := range m.Header {
			for order, value := range orders {
				if strings.EqualFold(name, order) && slices.Contains(values, value) && name != "Nats-Batch-Commit" {
					t.Errorf("message %d has the header %s: %s", place+1, name, value)
				}
			}
		}
	}
}
