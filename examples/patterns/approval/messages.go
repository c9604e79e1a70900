package approval

// Submit asks for an expense to be approved.
type Submit struct {
	Expense string `json:"expense"`
	Cents   int    `json:"cents"`
	Manager string `json:"manager"`
	Boss    string `json:"boss"` // of the manager
}

// Ask asks a person to decide, by a letter or in a chat.
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

// Remind is the timeout after which they are asked again.
type Remind struct{}

func (Submit) Kind() string  { return "expense.submit" }
func (Ask) Kind() string     { return "expense.ask" }
func (Decide) Kind() string  { return "expense.decide" }
func (Decided) Kind() string { return "expense.decided" }
func (Remind) Kind() string  { return "expense.remind" }
