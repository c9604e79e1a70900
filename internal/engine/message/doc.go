// Package message takes one message through its handler, for all engines: decoding, the step, and the verdict on its
// outcome.
//
// A [Message] is a row of a queue with its decoded contents, its handler, and its fate: what happens to it when the
// transaction commits. Engines use these parts:
//
//   - [Decoder] prepares messages for their handlers, or decides the fate of messages that this process cannot
//     understand, and calls the handlers.
//   - [Tally] turns the outcome of a step into a fate. It calls the endpoint's policy about failures, and counts
//     them.
//
// Package outcome carries the fates out.
//
// A [Recipient] has the properties of the endpoint that these parts need. It does not change while the endpoint runs.
// The other types belong to the goroutine that runs the transaction.
package message
