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
// A worker is stopped by SIGSTOP, and if Postgres says that it holds an open transaction, it gets SIGKILL; if not, it
// goes on and is tried again.
//
// Reading order: roles_test.go (the programs), exchange_test.go (what is counted), hands_test.go (who is killed).
package exchange
