package changing

import (
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// Join starts a membership.
type Join struct {
	Email string `json:"email"`
}

// Kind is the name of Join.
func (Join) Kind() string { return "member.join" }

// Member is the state of one member.
type Member struct {
	Fees     int  `json:"fees"`     // that were paid
	Reminded bool `json:"reminded"` // of a fee that was not
}

const payWithin = 30 * 24 * time.Hour

// Join sets the time for the first fee.
func (m *Member) Join(ctx *saga.Context, _ Join) error {
	ctx.Timeout(payWithin, FeeDue{}, saga.Named("fee"))
	return nil
}

// Paid counts a fee.
func (m *Member) Paid(*saga.Context, FeePaid) error {
	m.Fees++
	return nil
}

// Due reminds a member.
func (m *Member) Due(*saga.Context, FeeDue) error {
	m.Reminded = true
	return nil
}

// members defines the saga of a member with the given store.
func members(store saga.Store) *saga.Definition {
	return saga.Define("member", saga.Options{Store: store},
		saga.StartedBy(func(m Join) string { return m.Email }, (*Member).Join),
		saga.Handles(func(m FeePaid) string { return m.Email }, (*Member).Paid),
		saga.OnTimeout((*Member).Due))
}

// Members is the saga of all members.
var Members = members(saga.Pessimistic)

// endpoint takes messages by their new names and by the old ones.
func endpoint(b *bus.Bus) (*bus.Endpoint, error) {
	// page accept
	return bus.NewEndpoint(b, "members", bus.EndpointOptions{}, bus.Saga(Members), bus.Accept(paid), bus.Accept(due))
	// end
}
