// Package exchange has four programs exchange messages, which are killed while they hold an open transaction, and
// counts.
//
// # What it proves
//
// Every number that is published is counted once by the saga and received once:
//
//   - a stock publisher of watermill-sql, with Edda's SchemaAdapter, publishes in the transaction that moves its
//     cursor;
//   - in the saga a message, the change of the state and what it sends commit together;
//   - a stock Router, with Edda's Publisher and Subscriber and the middleware Together, answers what the saga
//     publishes: its answer commits with its ack;
//   - a stock subscriber of watermill-sql writes through the transaction that also acks.
//
// A number without a receipt is lost, one with several is doubled, and a receipt of no number is invented. The sums of
// the saga are compared with those of the numbers (miscounted), and no message may be dead, discarded (given up) or
// left in a queue (left).
//
// # Reading order
//
// roles.go has the programs, exchange.go kills them and counts.
package exchange
