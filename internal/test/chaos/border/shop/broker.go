package shop

import (
	"context"

	"github.com/edda-go/edda/examples/two-databases/broker"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
)

// provision makes the streams and their consumers, as broker.Provision does for one node. A stream is kept by all nodes
// of a cluster of three, so that what the broker has taken outlives any one of them.
func provision(ctx context.Context, c *cluster.Cluster) error {
	for _, topic := range broker.Topics {
		if err := c.CreateStream(ctx, topic, cluster.StreamOptions{Replicas: c.Nodes(), Queue: true}); err != nil {
			return err
		}
		if err := c.CreateConsumer(ctx, topic, topic,
			cluster.ConsumerOptions{AckWait: broker.AckWait, Push: true}); err != nil {
			return err
		}
	}
	return nil
}

// held counts the messages that the broker has, given to somebody or not.
func held(ctx context.Context, c *cluster.Cluster) (sum uint64, err error) {
	for _, topic := range broker.Topics {
		n, _, err := c.Messages(ctx, topic)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
