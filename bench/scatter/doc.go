// Command scatter measures a hot saga: one instance sends 1,000 requests and gathers 1,000 replies, again and again, in
// the designs of examples/patterns/scatter and with both stores, and what that costs the other messages of its
// endpoint.
//
//	cd bench && go run ./scatter                                  # all designs, both stores; two to three minutes
//	cd bench && go run ./scatter -design flat -workers 1
//	cd bench && go run ./scatter -design flat -requests 100000 -full
//	cd bench && go run ./scatter -h
//
// # What it measures, and what it proves
//
// The servers that host the sagas are endpoints with a bus and connections of their own, which know of each other only
// what the database tells them, as processes would. Beside the replies they handle a thin and steady stream of
// unrelated messages, of another saga; their critical time (from the send to the commit) is measured in quiet first,
// and then during the run.
//
// At the end the total of every scatter is compared with the right one. No message may have died, no unrelated one be
// lost, and no item be left. Otherwise the exit code is 1.
package main
