package remote

import (
	"cmp"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/saga"
)

// PublishOptions of a Publish. Every zero is a default.
type PublishOptions struct {
	Topic string // of the publisher; "" is the kind
	// Permanent reports whether an error of the publisher means that no attempt can succeed, for example because the
	// message is too large for the broker. saga.Permanent has the same effect; nil is none.
	Permanent func(error) bool
}

// Publish makes a part of an endpoint that publishes the messages of a kind, each in a call of its own: the body is the
// payload, and metadata are the user's headers, the run (RunOfMessage), and the rest of outbox.Envelope, so that an
// Intake of another database can take them in. The endpoint is leased: Concurrency is how many are on their way at a
// time.
//
// The run of a message stays open when the publisher returns nil, for NewMessageHandler and scheduler.Reports. A
// message that no manifest emitted is done then. An error of the publisher is a failed attempt of the message, after
// which the policy of the endpoint decides; it is not an attempt of the run.
//
// The UUID is the id of the message, which is another one for each attempt of a run. It is not the id of the run:
// a broker that drops what has the UUID of an earlier message, as JetStream does within its duplicate window and an
// Intake for as long as its inbox remembers, would drop the second attempt, and the run would be lost until it has no
// retries left. A submission that is repeated because its answer was lost has the same UUID, and may be dropped. The
// key of the work is metadata: IdempotencyKey.
//
// The publisher stays the caller's: it is not closed.
func Publish(kind string, publisher message.Publisher, o PublishOptions) bus.Part {
	if publisher == nil {
		return bus.InvalidPart(fmt.Errorf("publish %.80q: the publisher is nil", kind))
	}
	s := publication{publisher: publisher, topic: cmp.Or(o.Topic, kind), permanent: o.Permanent}
	return bus.Handle(s.submit, bus.OfKind(kind))
}

type publication struct {
	publisher message.Publisher
	topic     string
	permanent func(error) bool
}

func (s publication) submit(ctx *bus.Context, raw saga.Raw) error {
	info := ctx.Info()
	token := ""
	if info.Firing != nil {
		token = wire.Token(ctx, info.Firing)
	}
	m := newMessage(&info, raw.Body, token)
	m.SetContext(ctx)
	if err := s.publisher.Publish(s.topic, m); err != nil {
		err = fmt.Errorf("submit %s to %s: %w", info.Kind, s.topic, err)
		if s.permanent != nil && s.permanent(err) {
			return saga.Permanent(err)
		}
		return err
	}
	ctx.LeaveRun()
	return nil
}
