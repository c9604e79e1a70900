package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/store/lease"
)

// PartitionOptions are the options of a partitioned endpoint. A zero field is a default; a negative number is an error.
type PartitionOptions struct {
	// Partitions is the number of queues, and of batches that run at a time in all processes together; 0 is 8, at
	// most 256. Install stores it, and a different number is an error from then on: see operate.Endpoints.
	Partitions int

	// Lease is how long a crashed process keeps its partitions; 0 is the default lease of 15 s, 2 s to 1 h. Processes
	// look for each other every third of it, and at least every 5 s.
	Lease time.Duration

	Holder   string          // the name of this process in the table lease, for operators; "" is the host's name
	Endpoint EndpointOptions // of each partition. Concurrency is 1; no ClusterConcurrency and no Ordered
}

const (
	standardPartitions = 8
	stopSlack          = 5 * time.Second // for the work after the last handler of a partition
)

func (o PartitionOptions) withDefaults(h *handlers.Table, poolSize int) (PartitionOptions, error) {
	var f option.Faults
	f.Int("Partitions", &o.Partitions, standardPartitions, 1, partition.Most)
	f.Duration("Lease", &o.Lease, lease.Default, 2*time.Second, time.Hour)
	e := &o.Endpoint
	if e.Concurrency > 1 {
		f.Add(fmt.Errorf("Endpoint.Concurrency is %d: a partition handles one batch at a time, "+
			"so raise Partitions instead", e.Concurrency))
	}
	if e.ClusterConcurrency != 0 {
		f.Add(errors.New("Endpoint.ClusterConcurrency must be 0: Partitions is already the number of " +
			"batches in the cluster"))
	}
	if e.Ordered != Unordered {
		f.Add(errors.New("Endpoint.Ordered is for endpoints with Handle: leave it out, partitions are " +
			"always in order"))
	}
	option.Default(&e.Concurrency, 1)
	var err error
	o.Endpoint, err = e.withDefaults(h, poolSize)
	f.Add(err)
	return o, f.Err()
}

// checkPartitioned requires a key for every kind.
func checkPartitioned(h *handlers.Table) error {
	var faults []error
	if h.Leased {
		faults = append(faults, errors.New("Handle has no partitions: give it an endpoint of its own, with "+
			"EndpointOptions.Ordered if the messages of a key must come in order"))
	}
	if h.Raw != nil {
		faults = append(faults, errors.New("HandleRaw has no keys, and so no partitions: give it an "+
			"endpoint of its own"))
	}
	for _, c := range h.Consumers {
		if c.Tx != nil && c.Key == nil {
			faults = append(faults, fmt.Errorf("%s has no key: give it a KeyedBy, or an endpoint without partitions",
				c.Kind))
		}
	}
	return errors.Join(faults...)
}

// checkUnpartitioned refuses keys, which have no effect without partitions.
func checkUnpartitioned(h *handlers.Table) error {
	var faults []error
	for _, c := range h.Consumers {
		if c.Tx != nil && c.Key != nil {
			faults = append(faults, fmt.Errorf("%s has a KeyedBy, but the endpoint has no partitions: leave it "+
				"out, or use NewPartitioned", c.Kind))
		}
	}
	return errors.Join(faults...)
}

// PartitionOf returns the partition of the messages of key: 0 … partitions-1. It is the same in every later version,
// because waiting messages depend on it. It panics if partitions is not positive.
func PartitionOf(key string, partitions int) int { return partition.Of(key, partitions) }
