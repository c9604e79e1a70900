package aggregate

import (
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// page batch

const (
	most    = 100         // payments of a file
	longest = time.Minute // that a payment waits for its file
)

// Batch is the state: the payments of the next file for a bank.
type Batch struct {
	Payments []Payment `json:"payments"`
}

func (b *Batch) add(ctx *saga.Context, m Pay) error {
	if ctx.IsNew() {
		ctx.Timeout(longest, Over{})
	}
	if slices.ContainsFunc(b.Payments, func(p Payment) bool { return p.ID == m.Payment.ID }) {
		return nil // it was sent twice
	}
	b.Payments = append(b.Payments, m.Payment)
	if len(b.Payments) < most {
		return nil
	}
	return b.end(ctx, Over{})
}

func (b *Batch) end(ctx *saga.Context, _ Over) error {
	ctx.Send(WriteFile{Bank: ctx.Key(), Payments: b.Payments})
	ctx.Complete() // which cancels the timeout; the next payment begins the next batch
	return nil
}

// Batches has an instance for each bank with payments that wait.
var Batches = saga.Define("batch", saga.Options{},
	saga.StartedBy(func(m Pay) string { return m.Bank }, (*Batch).add),
	saga.OnTimeout((*Batch).end))

// end
