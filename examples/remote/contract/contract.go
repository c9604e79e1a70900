package contract

// MakeInvoice requests an invoice to a customer.
type MakeInvoice struct{ Customer string }

// Kind is the name of the message.
func (MakeInvoice) Kind() string { return "invoice.make" }

// The topics. Both are subjects of one stream.
const (
	Stream   = "invoices"
	Invoices = "invoices.make" // submissions, for workers
	Runs     = "runs.ended"    // reports on runs, for the shop: signs of life, and ends
)
