package changing

import (
	"context"
	"errors"

	"github.com/edda-go/edda/bus"
)

// page move
// both returns the endpoint under its old and its new name. The old one takes only messages addressed to its name.
func both(b *bus.Bus) (members, club *bus.Endpoint, err error) {
	members, err1 := bus.NewEndpoint(b, "members", bus.EndpointOptions{DirectOnly: true}, bus.Saga(Members))
	club, err2 := bus.NewEndpoint(b, "club", bus.EndpointOptions{}, bus.Saga(Members))
	return members, club, errors.Join(err1, err2)
}

// switchOver directs all messages that are sent from now on to the new name.
func switchOver(ctx context.Context, members, club *bus.Endpoint) error {
	if err := errors.Join(members.Install(ctx), club.Install(ctx)); err != nil {
		return err
	}
	return members.Unsubscribe(ctx, Join{}.Kind(), FeePaid{}.Kind())
}

// end
