package aggregate

// Pay adds a payment to the next file for a bank.
type Pay struct {
	Bank    string  `json:"bank"`
	Payment Payment `json:"payment"`
}

// Payment is a line of a file.
type Payment struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// WriteFile requests a file with these payments.
type WriteFile struct {
	Bank     string    `json:"bank"`
	Payments []Payment `json:"payments"`
}

// Over is the timeout of a batch.
type Over struct{}

func (Pay) Kind() string       { return "payment.pay" }
func (WriteFile) Kind() string { return "bank.write-file" }
func (Over) Kind() string      { return "payment.batch-over" }
