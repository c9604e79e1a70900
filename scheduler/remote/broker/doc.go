// Package broker lets other programs do the work of the runs of manifests, over any publisher and subscriber of
// Watermill. Package remote does the same over HTTP.
//
// Here, in the program with the database, an endpoint publishes each run, and a handler takes what became of it:
//
//	e, err := bus.NewEndpoint(b, "reports", bus.EndpointOptions{Concurrency: 20},
//		broker.Submit("report.make", publisher, broker.SubmitOptions{}))
//	router.AddConsumerHandler("runs", "run-reports", subscriber,
//		broker.NewHandler(reports, broker.HandlerOptions{}))
//
// There, in a program that needs no database:
//
//	client := &broker.Client{Publisher: publisher, Topic: "run-reports"}
//	router.AddConsumerHandler("worker", "report.make", subscriber, func(m *message.Message) error {
//		run, err := broker.RunOf(m)
//		…
//		return client.Work(m.Context(), run, time.Minute,
//			func(ctx context.Context) error { return makeReport(ctx, m) })
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
//	unknown    the publisher failed otherwise: the message is published again, as the policy of the endpoint says
//
// A run that is submitted and of which nothing is heard for scheduler.Options.LostAfter is lost: it is submitted again
// as its next attempt while its manifest has retries. Manifest.Timeout bounds it as well. Its message may have waited
// in the broker all the time: let LostAfter be longer than a queue there.
//
// # The other side
//
// A broker brings a message at least once, and each attempt is a message of its own. All of them have one idempotency
// key, the id of the run. A side that acks a message after the work is given it again if it crashes; one that acks
// before it is given the next attempt, after LostAfter. It may report by HTTP, too, with remote.Client. It does not
// learn over a broker that a run is over, so that work may be done for nothing; its report then changes nothing.
//
// # Access
//
// Whoever may publish to the topic of the reports may end any run. The id of a run is no secret.
package broker
