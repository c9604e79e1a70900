package approval

// Submit submits an expense for approval.
type Submit struct {
	Expense string `json:"expense"`
	Cents   int    `json:"cents"`
	Manager string `json:"manager"`
	Boss    string `json:"boss"` // of the manager
}

// Ask requests a person's decision, by a letter or in a chat.
type Ask struct {
	Expense string `json:"expense"`
	Person  string `json:"person"`
}

// Decide is the decision of a person.
type Decide struct {
	Expense string `json:"expense"`
	Approve bool   `json:"approve"`
	By      string `json:"by"`
}

// Decided is the end.
type Decided struct {
	Expense  string `json:"expense"`
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// Remind is the timeout after which the request is repeated.
type Remind struct{}

func (Submit) Kind() string  { return "expense.submit" }
func (Ask) Kind() string     { return "expense.ask" }
func (Decide) Kind() string  { return "expense.decide" }
func (Decided) Kind() string { return "expense.decided" }
func (Remind) Kind() string  { return "expense.remind" }
