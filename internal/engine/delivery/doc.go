// Package delivery is what all engines do with one message on its way through a handler.
//
// A [Message] is a row of a queue with what is known of it: what it says, who handles it, and its fate, which is what
// becomes of it when the transaction commits. Engines use these parts:
//
//   - [Decoder] makes messages ready for their handlers, or decides the fate of those that this process cannot
//     understand.
//   - [Tally] turns the outcome of a step into a fate. It asks the endpoint's policy about failures, and counts them.
//   - [Effects] writes what follows from the fates, in one transaction: sends, retries, dead letters, discards,
//     removals and ends of runs. After the commit it wakes others and logs.
//
// A [Recipient] is what these parts know of the endpoint. It does not change while the endpoint runs. The other types
// belong to the goroutine that runs the transaction.
//
// A failure of the database leaves every message as it was: nothing is written before the last statement of the
// transaction, and an engine that rolls back starts again with the same rows.
package delivery
