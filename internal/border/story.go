package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/edda-go/edda/bus"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// tellStory prints how far each lost message came: whether the stream holds it, whether it entered the queue there, and
// whether the inbox knows its id. So it tells on which side of the broker to look.
func tellStory(ctx context.Context, g *ground, v verdict) error {
	streamed, err := inTheStream(ctx, g)
	if err != nil {
		return err
	}
	there, err := newSide(ctx, g.there, bus.Options{})
	if err != nil {
		return err
	}
	defer there.pool.Close()
	for _, m := range v.gone {
		known := 0
		for _, s := range streamed[m] {
			n := 0
			if err := there.pool.QueryRow(ctx, sql("known"), s.id).Scan(&n); err != nil {
				return fmt.Errorf("look for a lost message in the inbox: %w", err)
			}
			known += n
		}
		fmt.Printf("border: lost %v in_the_stream=%v entered_there=%v in_the_inbox=%v\n", m, streamed[m], v.entered[m],
			known > 0)
	}
	for _, m := range v.late {
		fmt.Printf("border: late %v in_the_stream=%v, behind %v in_the_stream=%v\n", m[0], streamed[m[0]], m[1],
			streamed[m[1]])
	}
	return nil
}

// copyOf is one copy of a message in the stream.
type copyOf struct {
	id      string
	subject string
	at      uint64
	stored  time.Time
}

func (c copyOf) String() string {
	return fmt.Sprintf("%s:%d at %s", c.subject, c.at, c.stored.Format("15:04:05.000"))
}

// inTheStream is where the stream has each message: the stream forgets nothing.
func inTheStream(ctx context.Context, g *ground) (map[one][]copyOf, error) {
	conn, err := nats.Connect(g.nodes.URL())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	reader, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	all := map[one][]copyOf{}
	for {
		batch, err := reader.Fetch(1000, jetstream.FetchMaxWait(2*time.Second))
		if err != nil {
			return nil, err
		}
		n := 0
		for msg := range batch.Messages() {
			n++
			m := one{}
			if err := json.Unmarshal(msg.Data(), &m); err != nil {
				return nil, fmt.Errorf("read what is in the stream: %w", err)
			}
			at, err := msg.Metadata()
			if err != nil {
				return nil, err
			}
			all[m] = append(all[m], copyOf{msg.Headers().Get(wmnats.WatermillUUIDHdr), msg.Subject(),
				at.Sequence.Stream, at.Timestamp})
		}
		if n == 0 {
			return all, nil
		}
	}
}
