package changing

import "github.com/edda-go/edda/saga"

// Enrol starts a membership with a number.
type Enrol struct {
	Number string `json:"number"`
	Email  string `json:"email"`
}

// page key
// NumberPaid reports a payment of a member. Members have had numbers since release 2; the key was the address before.
type NumberPaid struct {
	Number string `json:"number"`
	Email  string `json:"email"`
}

// AddressPaid is NumberPaid for a member of before.
type AddressPaid NumberPaid

// Numbered has members by their numbers, and older members by their addresses until they have left.
var Numbered = saga.Define("member", saga.Options{},
	saga.StartedBy(func(m Enrol) string { return m.Number }, (*Member).Enrol),
	saga.Handles(func(m NumberPaid) string { return m.Number }, (*Member).NumberPaid, saga.IfMissingDo(asBefore)),
	saga.Handles(func(m AddressPaid) string { return m.Email }, (*Member).AddressPaid),
	saga.OnTimeout((*Member).Due))

// asBefore addresses an older member, when no member has the number.
func asBefore(ctx *saga.Context, m NumberPaid) error {
	ctx.Send(AddressPaid(m))
	return nil
}

// end

// Kind is the name of Enrol.
func (Enrol) Kind() string { return "member.enrol" }

// Kind is the name of NumberPaid.
func (NumberPaid) Kind() string { return "number.paid" }

// Kind is the name of AddressPaid.
func (AddressPaid) Kind() string { return "address.paid" }

// Enrol sets the time for the first fee.
func (m *Member) Enrol(ctx *saga.Context, _ Enrol) error { return m.Join(ctx, Join{}) }

// NumberPaid counts a fee.
func (m *Member) NumberPaid(ctx *saga.Context, _ NumberPaid) error { return m.Paid(ctx, FeePaid{}) }

// AddressPaid counts a fee of a member of before.
func (m *Member) AddressPaid(ctx *saga.Context, _ AddressPaid) error { return m.Paid(ctx, FeePaid{}) }
