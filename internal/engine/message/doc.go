// Package message takes one message through its handler, for all engines: decoding, the verdict on its outcome, and
// the writes that follow.
//
// A [Message] is a row of a queue with its decoded contents, its handler, and its fate: what happens to it when the
// transaction commits. Engines use these parts:
//
//   - [Decoder] prepares messages for their handlers, or decides the fate of messages that this process cannot
//     understand.
//   - [Tally] turns the outcome of a step into a fate. It calls the endpoint's policy about failures, and counts
//     them.
//   - [Effects] writes the effects of the fates, in one transaction: sends, retries, dead letters, discards, removals
//     and ends of runs. After the commit it wakes workers and logs.
//
// A [Recipient] has the properties of the endpoint that these parts need. It does not change while the endpoint runs.
// The other types belong to the goroutine that runs the transaction.
//
// A failure of the database leaves every message as it was: the messages change only in the last statements of the
// transaction, and an engine that rolls back starts again with the same rows.
package message
