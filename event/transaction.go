package event

import "github.com/edda-go/edda/saga"

// Transaction describes one transaction to Around of bus.Options.
type Transaction struct {
	Endpoint string
	Work     Work

	// The fields below are set after run has returned.

	// Taken is the number of messages that the transaction decided about, or tried to; 0 after an empty take.
	Taken int
	// Messages returns these messages. An attempt that failed, and was repeated in the same transaction, is an entry
	// of its own, before the others. Each call makes a new slice. It must not be called after Around has returned.
	Messages func() []Settled
	// Err is the reason why the transaction was rolled back, or nil. After a rollback the messages have no Fate: they
	// are still in the queue, unless Err is the error of a COMMIT whose reply was lost.
	Err error
}

// Work is the job of a transaction.
type Work string

// The jobs of transactions.
const (
	Batch  Work = "batch"  // takes messages, runs their handlers and commits the effects
	Finish Work = "finish" // of a leased endpoint: ends messages whose handlers have returned
	Relay  Work = "relay"  // one pass of a relay: it reads, forwards, and then deletes in one transaction
)

// Settled is one message, or one attempt, at the end of a transaction.
type Settled struct {
	Info saga.Info // its kind is printable
	Saga string    // "" for a plain handler
	Key  string    // of the instance
	Fate Fate      // "" after a rollback
	Err  error     // of the attempt
}

// Fate is the result of a transaction for a message.
type Fate string

// The fates of messages.
const (
	FateHandled    Fate = "handled"    // its effects are committed
	FateRetried    Fate = "retried"    // a retry follows
	FateDead       Fate = "dead"       // it is a dead letter, or its run has failed
	FateDiscarded  Fate = "discarded"  // it was consumed without effect
	FateConflicted Fate = "conflicted" // another transaction changed the instance first: it is handled again
	FateMoved      Fate = "moved"      // it is in the queue of a partition now
	FateLost       Fate = "lost"       // the claim was lost: another process has claimed it
	FateLeft       Fate = "left"       // it stays in the queue as it was
	FateRelayed    Fate = "relayed"    // the other side has accepted it
)
