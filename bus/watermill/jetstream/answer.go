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

// Error codes of JetStream that need different responses.
const (
	messageTooLarge = natsjs.JSErrCodeStreamMessageExceedsMaximum // max_msg_size of the stream
	headersTooLarge = natsjs.ErrorCode(10097)                     // 64 KiB
	batchesDisabled = natsjs.ErrorCode(10174)
	batchHasRepeats = natsjs.ErrorCode(10201)
)

// answer is the answer of a stream to a message. The answer to the first message of a batch is empty.
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

// tooLarge returns, before a message is sent, the error that the client would return then.
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

// ofBatch wraps the two errors of a batch that a different way of publishing avoids.
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

// Unfit reports whether err means that NATS cannot take the message itself: with its headers it is too large for the
// server or the stream, or it has an invalid header name. Waiting does not help. Publish returns such an error as a
// *saga.PermanentError, so a relay makes a dead letter of the message without further configuration.
// It returns false for a full stream, a subject without a stream, and a node that is away: these errors pass.
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
