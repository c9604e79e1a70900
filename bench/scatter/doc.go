// Command scatter measures a hot saga, in the designs of examples/patterns/scatter and with both stores: one instance
// repeatedly sends 1,000 requests and gathers 1,000 replies. It also measures the delay of the other messages of the
// saga's endpoint.
//
//	cd bench && go run ./scatter                                  # all designs, both stores; two to three minutes
//	cd bench && go run ./scatter -design flat -workers 1
//	cd bench && go run ./scatter -design flat -requests 100000 -full
//	cd bench && go run ./scatter -h
//
// # Measurements and checks
//
// The servers that host the sagas are endpoints with a bus and connections of their own, which share only the database,
// as processes would. Beside the replies they handle a thin and steady stream of unrelated messages, of a second saga.
// The critical time of these messages (from the send to the commit) is measured first without load, and then during
// the run.
//
// At the end the total of every scatter is compared with the right one. No message may have died, no unrelated one be
// lost, and no item be left. Otherwise the exit code is 1.
package main
