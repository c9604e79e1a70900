package changing

// page rename
// FeePaid reports a payment of a member. Older programs send it as MemberPaid.
type FeePaid struct {
	Email string `json:"email"`
}

// MemberPaid is the old name of FeePaid.
type MemberPaid FeePaid

// FeeDue is a timeout. Older programs have set it as MemberDue.
type FeeDue struct{}

// MemberDue is the old name of FeeDue.
type MemberDue FeeDue

// Kind is the new name.
func (FeePaid) Kind() string { return "fee.paid" }

// Kind is the old name.
func (MemberPaid) Kind() string { return "member.paid" }

// Kind is the new name.
func (FeeDue) Kind() string { return "fee.due" }

// Kind is the old name.
func (MemberDue) Kind() string { return "member.due" }

func paid(old MemberPaid) (FeePaid, error) { return FeePaid(old), nil }
func due(old MemberDue) (FeeDue, error)    { return FeeDue(old), nil }

// end
