package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// The headers of an atomic batch: all of its messages have one id, they are counted from 1, and the last one commits.
// The server keeps a batch beside its stream until then, and drops a batch with a gap, or without a commit in ten
// seconds.
const (
	batchIDHeader       = "Nats-Batch-Id"
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

var (
	errNoBatches = errors.New("the stream does not allow atomic publish")
	errRepeat    = errors.New("the stream already has some of the messages")
)

// publishAtomically writes all messages or nothing. It requests an answer to the first message, which proves that the
// stream has begun a batch: a server older than batches would store every message separately, and would not report a
// message that it refuses. stored is the number of messages that such a server has stored.
func (p *Publisher) publishAtomically(ctx context.Context, wire []*nats.Msg) (stored int, err error) {
	id, last := nuid.Next(), len(wire)-1
	wire[last].Header.Set(batchCommitHeader, "1")
	for n, m := range wire {
		m.Header.Set(batchIDHeader, id)
		m.Header.Set(batchSequenceHeader, strconv.Itoa(n+1))
		if err := p.tooLarge(m); err != nil { // before the first is sent, so that no half of a batch is left there
			return 0, fmt.Errorf("message %d of %d: %w", n+1, len(wire), err)
		}
	}
	switch begun, err := p.ask(ctx, wire[0]); {
	case err != nil:
		return 0, ofBatch(err)
	case begun.Sequence > 0:
		return 1, fmt.Errorf("it took the first message as a single one: %w", errNoBatches)
	}
	for n, m := range wire[1:last] {
		if err := p.conn.PublishMsg(m); err != nil {
			return 0, fmt.Errorf("message %d of %d: %w", n+2, len(wire), unfit(err))
		}
	}
	done, err := p.ask(ctx, wire[last])
	switch {
	case err != nil:
		return 0, ofBatch(err)
	case done.Batch != id || done.Count != len(wire):
		return 0, fmt.Errorf("the stream has %d messages of batch %q, want %d of %q", done.Count, done.Batch, len(wire),
			id)
	}
	return 0, nil
}

// unbatched removes the headers that make a message part of a batch.
func unbatched(m *nats.Msg) {
	for _, name := range []string{batchIDHeader, batchSequenceHeader, batchCommitHeader} {
		m.Header.Del(name)
	}
}

// refusals records the topics whose stream has lately refused a batch. The zero value is empty. A stream may be
// changed, so each is tried again after a while.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu
}

const refusalHolds = 30 * time.Second

func (r *refusals) lately(topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.last[topic]
	return known && time.Since(at) < refusalHolds
}

// note records a refusal, and reports whether it is the first of the topic.
func (r *refusals) note(topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	_, known := r.last[topic]
	r.last[topic] = time.Now()
	return !known
}
