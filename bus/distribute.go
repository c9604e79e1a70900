package bus

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// PartitionOf is the partition that the messages of key go to, of so many: 0 … partitions-1. It is FNV-1a of 64 bits
// with the finalizer of MurmurHash3, and will be the same in every later version: messages that wait depend on it. It
// panics when there are no partitions.
func PartitionOf(key string, partitions int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * prime
	}
	// FNV leaves the high bits of short keys alike, and those choose the partition.
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	hash ^= hash >> 33
	if partitions < 1 {
		panic("bus: PartitionOf wants at least one partition")
	}
	place, _ := bits.Mul64(hash, uint64(partitions)) // as hash / 2^64 of the way, without the bias of a remainder
	return int(place)
}

// spread is where a distributor moves messages to. It belongs to the one worker of its endpoint.
type spread struct {
	names []string // of the partitions' endpoints
	moves map[route]string
}

// route is from a queue to another one.
type route struct{ from, to *queue.Queue }

// move is the statement of a route.
func (s *spread) move(r route) string {
	sql, ok := s.moves[r]
	if !ok {
		sql = r.from.To(r.to, "move")
		s.moves[r] = sql
	}
	return sql
}

// decide moves messages to their partitions, in place of handlers.
func (s *spread) decide(ctx context.Context, b *batch) error {
	if err := s.distribute(ctx, b); err != nil {
		return err
	}
	return b.checkRuns(ctx)
}

func (s *spread) handles() bool { return false }

// distribute decides the partition of every message that its kind and body are understood of. The others met their fate
// in decode, as in any endpoint: what cannot be read is dead here, and a kind that nobody knows yet waits here, so that
// it is moved by its key in the end.
func (s *spread) distribute(ctx context.Context, b *batch) error {
	var byID []*message
	now := time.Now()
	deadline := now.Add(min(b.ep.options.Budget, b.ep.options.StepTimeout))
	for n, m := range b.messages {
		if m.fate != fateLeft || m.consumer == nil {
			continue
		}
		if n > 0 && now.After(deadline) {
			b.messages, b.cut = b.messages[:n], true
			break
		}
		key, err := s.keyFor(b, m)
		if now = b.readBy(m, now); m.fate != fateLeft {
			continue
		}
		switch {
		case err != nil:
			b.fail(m, saga.Permanent(fmt.Errorf("key of %s: %w", m.Kind, err)))
		case key == "":
			byID = append(byID, m)
		default:
			s.moveTo(m, key)
		}
	}
	return s.distributeByInstance(ctx, b, byID)
}

// keyFor is the key of a message, or "" when it names an instance.
func (s *spread) keyFor(b *batch, m *message) (string, error) {
	switch {
	case m.undecided():
		return "", nil
	case m.call == nil:
		return m.keyOf(b.ep.bus.codec)
	}
	return m.call.Key(), nil
}

func (s *spread) moveTo(m *message, key string) {
	m.fate, m.partition = fateMoved, PartitionOf(key, len(s.names))
}

// distributeByInstance moves answers and timeouts to where the key of their instance is. They arrive here when the
// instance was started before the endpoint had partitions, or had another number of them. An instance that is gone has
// no order to keep.
func (s *spread) distributeByInstance(ctx context.Context, b *batch, messages []*message) error {
	if len(messages) == 0 {
		return nil
	}
	refs := make([]persistence.Ref, len(messages))
	for i, m := range messages {
		refs[i].ID = m.delivery.Info.Instance
	}
	found, err := b.ep.bus.sagas.Load(ctx, b.conn, refs)
	if err != nil {
		return err
	}
	for i, m := range messages {
		key := string(refs[i].ID[:])
		if found[i].Status != persistence.Absent {
			key = found[i].Instance.Key
		}
		s.moveTo(m, key)
	}
	return nil
}

var errNoPartition = errors.New("the queue of a partition is not installed")

// queue queues the moves, one statement for each partition.
func (s *spread) queue(b *batch, pipeline *pgx.Batch, known *queue.Routes) error {
	tids := make([]*pg.Array, len(s.names))
	for _, m := range b.messages {
		if m.fate != fateMoved {
			continue
		}
		if tids[m.partition] == nil {
			tids[m.partition] = pg.TIDs()
		}
		tids[m.partition].TID(m.tid)
	}
	for n, of := range tids {
		if of == nil {
			continue
		}
		target := known.Endpoints[s.names[n]]
		if target == nil {
			return fmt.Errorf("move messages to %s: %w: %w", s.names[n], errNoPartition, ErrNotInstalled)
		}
		pipeline.Queue(s.move(route{b.ep.queue, target}), of, of.Len())
		b.noteWake(target, b.now)
	}
	return nil
}
