// Package gather is one task for a hot saga, in several designs: it sends many requests and gathers as many replies.
//
// # Promise
//
// A run ends with a row in the table result, which has no constraint: how many replies were counted, the sum of their
// values, and the sum of the squares. Check compares every row with what it must be, and CheckLeft sees items that a
// run has not taken away.
//
// # The designs
//
//	flat        one saga sends all requests and adds up all replies
//	tree        a saga halves its requests between two sagas, down to single requests: each waits for two replies
//	chunks      one level of sagas, about as many as each of them has requests
//	sequential  the next request is sent when the reply to the last one has come
//	append      the replies are rows beside the saga, persistence.Items, added by plain handlers; the saga is
//	            written when it begins and when all rows are there
//
// They are the redesigns that a chapter on saga concurrency recommends where replies fight for one instance. Edda
// handles the replies that wait for one instance in one batch and saves once, so conflicts are no reason to avoid the
// flat design. docs/guide/hot-sagas.md has measured them all.
//
// # States
//
// A saga of a design has sent some of its parts, awaits some, and ends when all are counted.
//
// # Failures
//
// A reply that finds no saga is a dead letter.
//
// Reading order: gather.go (the saga in four designs), append.go (the fifth), check.sql.
package gather
