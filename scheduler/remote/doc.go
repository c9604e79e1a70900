// Package remote lets other programs do the work of the runs of manifests, over HTTP. Package broker does the same over
// publishers and subscribers of Watermill.
//
// Here, in the program with the database, an endpoint submits each run, and a handler takes what became of it:
//
//	e, err := bus.NewEndpoint(b, "invoices", bus.EndpointOptions{Concurrency: 20},
//		remote.Submit("invoice.make", "https://worker.example.com/invoices", remote.SubmitOptions{}))
//	http.Handle("/edda/", http.StripPrefix("/edda", remote.NewHandler(reports, remote.HandlerOptions{})))
//
// There, in a program that needs no database:
//
//	run, err := remote.RunOf(request)
//	go client.Work(ctx, run, time.Minute, func(ctx context.Context) error { return makeInvoice(ctx, body) })
//	w.WriteHeader(http.StatusAccepted)
//
// # Promise
//
// A run is submitted after the commit that marked it active, at least once, with its id as the Idempotency-Key, and
// with no transaction open. It has ended when the other side says so, and not when that took the request. Each attempt
// ends once: what comes for one that is over changes nothing.
//
// # States of a run
//
//	submitted  the other side answered 202: the run is active, and waits for beats and its end
//	done       it answered another 2xx: the run has succeeded
//	refused    it answered 4xx: the run is dead, because no other try would be taken
//	unknown    no answer, 408, 425, 429 or 5xx: the message is submitted again, as the policy of the endpoint says
//
// A run that is submitted and of which nothing is heard for scheduler.Options.LostAfter is lost: it is submitted again
// as its next attempt while its manifest has retries. Manifest.Timeout bounds it as well, and is final.
//
// # The other side
//
// The id of a run is the same for all its attempts. A side that has done a run's work answers 200 to another
// submission. One that is at work with an older attempt learns from its next beat that this is over (ErrOver). One that
// is faster than the commit of the submission leaves a discarded row for its message, with the reason "its run is
// over".
//
// # Access
//
// A report needs the token that the submission of its attempt carried: a program ends only the attempts that were
// submitted to it. NewHandler checks no other identity: put it behind what guards your other routes. The id of a run is
// a random UUID, but it is no secret.
package remote
