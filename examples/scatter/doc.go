// Command scatter shows a hot saga: one instance sends 1,000 requests and gathers 1,000 replies, again and again, built
// in several ways and with both stores, and what that costs the other messages of its endpoint.
//
//	go run ./examples/scatter                                  # all designs, both stores; two to three minutes
//	go run ./examples/scatter -design flat -workers 1
//	go run ./examples/scatter -design flat -requests 100000 -full
//	go run ./examples/scatter -h
//
// # The designs
//
//	flat        one saga sends all requests and adds up all replies
//	tree        a saga halves its requests between two sagas, down to single requests: each waits for two replies
//	chunks      one level of sagas, about as many as each of them has requests
//	sequential  the next request is sent when the reply to the last one has come
//	append      the replies are rows of a table of the program's own, written by plain handlers; the saga is written when it
//	            begins and when all rows are there
//
// They are the redesigns that a chapter on saga concurrency recommends where replies fight for one instance. With Edda
// the replies that wait for one instance are handled in one batch and saved once, so that the flat design need not be
// avoided for its conflicts; the table shows what the others cost and give.
//
// # What it measures, and what it proves
//
// The servers that host the sagas are endpoints with a bus and connections of their own, which know of each other only
// what the database tells them, as processes would. Beside the replies they handle a thin and steady stream of
// unrelated messages, of another saga; their critical time (from the send to the commit) is measured in quiet first,
// and then during the run.
//
// Each scatter ends with a row in a table that has no constraint: how many replies were counted, the sum of their
// values, and the sum of the squares. At the end SQL compares every row with what it must be; there must be one for
// each scatter, no message may have died, and no unrelated one be lost. Otherwise the exit code is 1.
//
// Reading order: gather.go (the saga in four designs), append.go (the fifth), round.go (one line of the table),
// errands.go (the unrelated messages), main.go, check.sql.
package main
