package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// printStory prints how far each message came that was lost or late: which copies the stream holds, whether it entered
// the queue there, and whether the inbox knows its id. So it shows on which side of the broker to look.
func (g *ground) printStory(ctx context.Context) error {
	if g.nodes == nil { // a queue forgets what is acked
		return nil
	}
	streamed, err := g.inTheStream(ctx)
	if err != nil {
		return err
	}
	for _, v := range g.Found() {
		if v.ID == "" {
			continue
		}
		ids := []string{}
		for _, c := range streamed[v.ID] {
			ids = append(ids, c.id)
		}
		var entered, known bool
		if err := g.there.pool.QueryRow(ctx, sql.Get("known"), v.ID, ids).Scan(&entered, &known); err != nil {
			return fmt.Errorf("look for a message in the inbox: %w", err)
		}
		g.Printf("%s %s in_the_stream=%v entered_there=%v in_the_inbox=%v", v.Rule, v.ID, streamed[v.ID], entered,
			known)
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
func (g *ground) inTheStream(ctx context.Context) (map[string][]copyOf, error) {
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
	all := map[string][]copyOf{}
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
			all[m.String()] = append(all[m.String()],
				copyOf{msg.Headers().Get(wmnats.WatermillUUIDHdr), msg.Subject(),
					at.Sequence.Stream, at.Timestamp})
		}
		if n == 0 {
			return all, nil
		}
	}
}
