// Package broker lets other programs do the work of the runs of manifests, over any publisher and subscriber of
// Watermill. Package remote does the same over HTTP.
//
// Here, in the program with the database, an endpoint publishes each run, and a handler takes what became of it:
//
//	e, err := bus.NewEndpoint(b, "invoices", bus.EndpointOptions{Concurrency: 20, Policy: patience},
//		broker.Submit("invoice.make", publisher, broker.SubmitOptions{Topic: "invoices.make"}))
//	router.AddConsumerHandler("runs", "runs.ended", subscriber,
//		broker.NewHandler(reports, broker.HandlerOptions{}))
//
// There, in a program that needs no database:
//
//	client := &broker.Client{Publisher: publisher, Topic: "runs.ended"}
//	router.AddConsumerHandler("worker", "invoices.make", subscriber, func(m *message.Message) error {
//		run, err := broker.RunOf(m)
//		…
//		return client.Work(m.Context(), run, time.Minute,
//			func(ctx context.Context) error { return makeInvoice(ctx, m) })
//	})
//
// # Promise
//
// A run is published after the commit that marked it active, at least once, with its id as the idempotency key, and
// with no transaction open. It has ended when a report says so, and not when the broker has it. Each attempt ends once:
// a report on one that is over changes nothing.
//
// # States of a run
//
//	submitted  the broker has it: the run is active, and waits for beats and its end
//	refused    the publisher's error is permanent: the run fails as by any permanent error
//	unknown    the publisher failed otherwise: the message is published again, as the policy of the endpoint says. If
//	           the policy gives up, this attempt of the run has failed: choose one that does not, such as
//	           recoverability.Backoff without a MaxElapsedTime
//
// A run that is submitted and of which nothing is heard for scheduler.Options.LostAfter is lost: it is submitted again
// as its next attempt while its manifest has retries. Manifest.Timeout bounds it as well, and is final. Both count
// while its message or a report on it waits in the broker. If submissions wait for longer than LostAfter, each attempt
// is lost before its turn, its success is dropped, and in the end the run is dead though each attempt was done: let
// LostAfter be longer than the queue, and than the time for which the consumer of the reports may be away.
//
// # The other side
//
// A broker brings a message at least once, and each attempt is a message of its own. All of them have one idempotency
// key, the id of the run. A side that acks a message after the work is given it again if it crashes. One that acks
// before it is given the next attempt, after LostAfter: it works with a context of the program, because that of a
// message ends with its ack, and bounds by itself how many it has in hand. It may report by HTTP, too, with
// remote.Client. It does not learn over a broker that a run is over, so that work may be done for nothing; its report
// then changes nothing. One that is faster than the commit of the submission leaves a discarded row for its message,
// with the reason "its run is over".
//
// # Failures
//
// The publisher has to return after the broker has the message, and to obey the context of a message or a timeout. The
// subscriber brings a nacked message again after a pause.
//
// # Access
//
// A program that may publish to the topic of the reports may end any run. The id of a run is no secret. Submit removes
// the metadata of a run that the author of a message chose; a plain relay to the workers' topic, or a Send to an
// endpoint that takes submissions in, does not.
package broker
