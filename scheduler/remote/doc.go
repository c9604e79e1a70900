// Package remote lets other programs do the work of the runs of manifests, over HTTP or over any publisher and
// subscriber of Watermill.
//
// Here, in the program with the database, an endpoint submits each run, and a handler takes the reports on it:
//
//	e, err := bus.NewEndpoint(b, "invoices", bus.EndpointOptions{Concurrency: 20},
//		remote.Submit("invoice.make", "https://worker.example.com/invoices", remote.SubmitOptions{}))
//	http.Handle("/edda/", http.StripPrefix("/edda", remote.NewHandler(reports, remote.HandlerOptions{})))
//
//	e, err := bus.NewEndpoint(b, "invoices", bus.EndpointOptions{Concurrency: 20, Policy: patience},
//		remote.Publish("invoice.make", publisher, remote.PublishOptions{Topic: "invoices.make"}))
//	router.AddConsumerHandler("runs", "runs.ended", subscriber,
//		remote.NewMessageHandler(reports, remote.HandlerOptions{}))
//
// There, in a program that needs no database:
//
//	run, err := remote.RunOf(request)
//	go client.Work(ctx, run, time.Minute, func(ctx context.Context) error { return makeInvoice(ctx, body) })
//	w.WriteHeader(http.StatusAccepted)
//
//	router.AddConsumerHandler("worker", "invoices.make", subscriber, func(m *message.Message) error {
//		run, err := remote.RunOfMessage(m)
//		…
//		return messageClient.Work(m.Context(), run, time.Minute,
//			func(ctx context.Context) error { return makeInvoice(ctx, m) })
//	})
//
// # Promise
//
// A run is submitted after the commit that marked it active, at least once, with its id as the idempotency key, and
// with no transaction open. It has ended when a report says so, and not when the other side or the broker has the
// submission. Each attempt ends once: a report on one that is over changes nothing.
//
// # States of a run
//
//	submitted  the other side answered 202, or the broker has the message: the run is active, and waits for beats and
//	           its end
//	done       the other side answered another 2xx: the run has succeeded
//	refused    it answered 4xx, or the publisher's error is permanent: the run is dead
//	unknown    no answer, 408, 425, 429 or 5xx, or another error of the publisher: the message is submitted again, as
//	           the policy of the endpoint says. If the policy gives up, this attempt of the run has failed: over a
//	           broker choose one that does not, such as recoverability.Backoff without a MaxElapsedTime
//
// A run that is submitted and silent for scheduler.Options.LostAfter is lost: it is submitted again as its next attempt
// while its manifest has retries. Manifest.Timeout bounds it as well, and is final. Both count while its message or a
// report on it waits in the broker. If submissions wait for longer than LostAfter, each attempt is lost before its
// turn, its success is dropped, and in the end the run is dead though each attempt was done: let LostAfter be longer
// than the queue, and than the time for which the consumer of the reports may be away.
//
// # The other side
//
// The id of a run is the same for all its attempts. A side that has done a run's work answers 200 to another
// submission. One that is at work with an older attempt learns from its next beat that this is over (ErrOver). One that
// is faster than the commit of the submission leaves a discarded row for its message, with the reason "its run is
// over".
//
// A broker brings a message at least once, and each attempt is a message of its own. A side that acks a message after
// the work is given it again if it crashes. One that acks before it is given the next attempt, after LostAfter: it
// works with a context of the program, because that of a message ends with its ack, and bounds by itself how many it
// has in hand. It may report by HTTP, too, with a Client. It does not learn over a broker that a run is over, so that
// work may be done for nothing; its report then changes nothing.
//
// # Failures
//
// The publisher has to return after the broker has the message, and to obey the context of a message or a timeout. The
// subscriber brings a nacked message again after a pause.
//
// # Access
//
// A report needs the token that the submission of its attempt carried: a program ends only the attempts that were
// submitted to it. NewHandler checks no other identity: put it behind what guards your other routes. The id of a run is
// a random UUID, but it is no secret. Publish removes the metadata of a run that the author of a message chose; a plain
// relay to the workers' topic, or a Send to an endpoint that takes submissions in, does not.
package remote
