// Command httpapi charges cards by another company's HTTP interface.
//
// Its handler must not run inside a transaction, for a call may take seconds: it belongs to bus.Handle, which leases the message
// instead. bus.Handle is not in this version. The handler compiles already; what needs bus.Handle stands in later.go, behind the
// build tag "later".
package main
