package scheduler

import (
	"context"
	"strings"

	"github.com/edda-go/edda/internal/lease"
)

// listen rings the bells when others call. Whatever it does not hear is found by polling.
func (s *Scheduler) listen(ctx context.Context) error {
	return lease.Listener{Pool: s.pool.Pool, Channel: s.schema.Channel(), Heard: s.heard, Logger: s.calm}.Run(ctx)
}

// heard is for the payload of each notification, and "" when some may have been missed.
func (s *Scheduler) heard(payload string) {
	if payload == "" {
		s.due.Send()
		s.ready.Send()
		s.keeper.Wake()
		s.singletons.heard("")
		return
	}
	for one := range strings.SplitSeq(payload, ",") {
		s.hear(one)
	}
}

func (s *Scheduler) hear(payload string) {
	switch payload {
	case evaluatePayload:
		s.due.Send()
	case dispatchPayload:
		s.ready.Send()
	case lease.WakePrefix + LeaseName:
		s.keeper.Wake()
	default:
		s.singletons.heard(payload)
	}
}
