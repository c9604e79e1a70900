// Package scatter asks many and gathers what comes in time: docs/patterns/scatter-gather.md. search.go asks some
// suppliers for a price, and keeps the best offer. designs.go and append.go ask a thousand, in five designs:
//
//	flat        one saga sends all requests and adds up all replies
//	tree        a saga halves its requests between two sagas, down to single requests: each waits for two replies
//	chunks      one level of sagas, about as many as each of them has requests
//	sequential  the next request is sent when the reply to the last one has come
//	append      the replies are rows beside the saga, persistence.Items, added by plain handlers; the saga is
//	            written when it begins and when all rows are there
//
// A chapter on saga concurrency recommends the last four where replies compete for one instance. Edda handles the
// replies that wait for one instance in one batch and saves once, so conflicts are no reason to avoid the flat design.
// docs/guide/hot-sagas.md says which design costs what, and bench/scatter measures it.
package scatter
