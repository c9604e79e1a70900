package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/edda-go/edda/saga"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// Error codes of JetStream that decide what is to be done.
const (
	messageTooLarge = natsjs.JSErrCodeStreamMessageExceedsMaximum // max_msg_size of the stream
	headersTooLarge = natsjs.ErrorCode(10097)                     // 64 KiB
	batchesDisabled = natsjs.ErrorCode(10174)
	batchHasRepeats = natsjs.ErrorCode(10201)
)

// answer is what a stream says to a message. An empty one is said to the first of a batch.
type answer struct {
	Error    *natsjs.APIError `json:"error"`
	Stream   string           `json:"stream"`
	Sequence uint64           `json:"seq"`
	Batch    string           `json:"batch"`
	Count    int              `json:"count"`
}

// ask publishes a message and waits for the answer.
func (p *Publisher) ask(ctx context.Context, m *nats.Msg) (a answer, err error) {
	if err := p.tooLarge(m); err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.AckWait)
	defer cancel()
	reply, err := p.conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return a, fmt.Errorf("subject %s: %w", m.Subject, natsjs.ErrNoStreamResponse)
	case err != nil:
		return a, unfit(err)
	case len(reply.Data) == 0:
		return a, nil
	}
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return a, fmt.Errorf("read the answer of the stream: %w", err)
	}
	if a.Error != nil {
		return a, unfit(a.Error)
	}
	if a.Stream == "" {
		return a, fmt.Errorf("subject %s was answered by something other than a stream", m.Subject)
	}
	return a, nil
}

// tooLarge tells before a message is sent what the client would say then.
func (p *Publisher) tooLarge(m *nats.Msg) error {
	if most := p.conn.MaxPayload(); most > 0 && int64(len(m.Data)+headerBytes(m.Header)) > most {
		return unfit(nats.ErrMaxPayload)
	}
	return nil
}

func headerBytes(h nats.Header) int {
	const around = len("NATS/1.0\r\n\r\n")
	n := around
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return n
}

// ofBatch tells the two errors of a batch that another way helps against.
func ofBatch(err error) error {
	var said *natsjs.APIError
	if errors.As(err, &said) {
		switch said.ErrorCode {
		case batchesDisabled:
			return fmt.Errorf("%w: %w", errNoBatches, err)
		case batchHasRepeats:
			return fmt.Errorf("%w: %w", errRepeat, err)
		}
	}
	return err
}

// Unfit tells the errors that say the message itself is nothing that NATS takes: it is too large, with its headers, for
// the server or the stream, or the name of a header is none. No waiting helps. Publish returns them as a
// *saga.PermanentError, so a relay makes a dead letter of the message without being told more.
//
// A stream that is full, a subject that no stream has, a node that is away are not among them: these pass.
func Unfit(err error) bool {
	var said *natsjs.APIError
	if errors.As(err, &said) {
		return said.ErrorCode == messageTooLarge || said.ErrorCode == headersTooLarge
	}
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadHeaderMsg)
}

func unfit(err error) error {
	if Unfit(err) {
		return saga.Permanent(err)
	}
	return err
}
