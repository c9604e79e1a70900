package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
	"github.com/edda-go/edda/internal/test/chaos/lab"
)

// broker is the nodes of one, as a storm strikes them.
type broker interface {
	members
	struck
	URL() string
	Unread(ctx context.Context, stream string) (uint64, error)
	Stop() error
}

type members interface {
	Nodes() int
	Leader(ctx context.Context, stream string) (int, error)
}

type struck interface {
	Kill(node int) error
	Restart(ctx context.Context, node int) error
	Freeze(node int)
	Thaw(ctx context.Context, node int) error
}

// oneRabbit is a RabbitMQ of one node.
type oneRabbit struct {
	*rabbit.Broker
	queues []string
}

func (oneRabbit) Nodes() int                                  { return 1 }
func (oneRabbit) Leader(context.Context, string) (int, error) { return 0, nil }
func (r oneRabbit) Kill(int) error                            { return r.Broker.Kill() }
func (r oneRabbit) Restart(ctx context.Context, _ int) error  { return r.Broker.Restart(ctx) }
func (r oneRabbit) Freeze(int)                                { _ = r.Broker.Freeze() } // Thaw tells of one that ended
func (r oneRabbit) Thaw(ctx context.Context, _ int) error     { return r.Broker.Thaw(ctx) }

// Unread is what no consumer has. RabbitMQ does not say over AMQP how much one has in hand.
func (r oneRabbit) Unread(context.Context, string) (n uint64, err error) {
	for _, queue := range r.queues {
		ready, readyErr := r.Ready(queue)
		n, err = n+uint64(ready), errors.Join(err, readyErr)
	}
	return n, err
}

// newGroundOver starts everything anew, with the broker of the way, and makes its stream or its queues.
func newGroundOver(ctx context.Context, s lab.Settings, over *way, nodes int) (g *ground, err error) {
	if !over.RabbitMQ {
		if g, err = newGround(ctx, s, cluster.Options{Nodes: nodes}); err != nil {
			return nil, err
		}
		over.URL = g.broker.URL()
		return g, g.closeAfter(over.lay(ctx, g.nodes))
	}
	if g, err = openGround(ctx, s); err != nil {
		return nil, err
	}
	one, err := rabbit.Start(ctx, rabbit.Options{})
	if err != nil {
		return nil, g.closeAfter(err)
	}
	r := oneRabbit{one, brokers.Subjects(topic, over.Parts)}
	g.broker, over.URL = r, r.URL()
	return g, g.closeAfter(over.layRabbit(ctx, r))
}

// layRabbit makes the queues.
func (w way) layRabbit(ctx context.Context, r oneRabbit) error {
	subscriber, err := brokers.NewRabbitMQSubscriber(w.URL, w.rabbitMQ(), nil)
	if err != nil {
		return err
	}
	for _, queue := range r.queues {
		err = errors.Join(err, subscriber.SubscribeInitialize(queue))
	}
	if err := errors.Join(err, subscriber.Close()); err != nil {
		return fmt.Errorf("make the queues: %w", err)
	}
	return r.AwaitKept(ctx, r.queues...)
}
