// Package eddaprom counts for Prometheus what a bus does.
//
//	metrics := eddaprom.New(eddaprom.Options{})
//	b, err := bus.New(pool, bus.Options{Events: metrics.Observe})
//	…
//	metrics.Watch(b) // the depth of the queues, read when Prometheus asks
//	prometheus.MustRegister(metrics)
//
// # Promise
//
// What is counted has happened: the numbers follow the bus's events, which follow the commit. Counting takes no lock of
// the database and waits for nothing. The depth of the queues is read from the database at a scrape, at most once in
// Options.QueueEvery, in a time that does not grow with the backlog.
//
// # Metrics
//
//	edda_messages_handled_total          counter    endpoint, saga, kind
//	edda_attempts_failed_total           counter    endpoint, kind       attempts that ended with an error
//	edda_attempts_retried_total          counter    endpoint, kind       failed attempts that another followed
//	edda_messages_dead_lettered_total    counter    endpoint, kind
//	edda_messages_discarded_total        counter    endpoint, kind
//	edda_conflicts_total                 counter    endpoint, saga       saves that came second
//	edda_claims_lost_total               counter    endpoint             messages of leased endpoints that may be in other hands
//	edda_batches_total                   counter    endpoint, result     committed or rolled_back
//	edda_batch_messages                  histogram  endpoint             messages that one transaction took
//	edda_batch_seconds                   histogram  endpoint             from the take to the commit
//	edda_processing_seconds              histogram  endpoint             the handler's own time for one message
//	edda_critical_seconds                histogram  endpoint             from sent, or due, to committed
//	edda_endpoint_slow                   gauge      endpoint             1 while it tries one message at a time, see bus.Slowed
//	edda_endpoint_paused                 gauge      endpoint             1 while somebody has paused it
//	edda_queue_ready, edda_queue_delayed gauge      endpoint             messages that are due now, or later
//	edda_queue_claimed, _parked          gauge      endpoint             in hand by a lease; waiting behind others of their key
//	edda_queue_oldest_due_seconds        gauge      endpoint             how long the first of them has been due
//	edda_queue_read_errors_total         counter                         scrapes that could not read the queues
//
// Every process counts what it did itself: add the counters up over processes. The queues are the same for all: take
// the maximum. The gauges of an endpoint come with the first time that it is slow or paused.
//
// # Failures
//
// Kinds come from messages, and anybody may send any kind: from the Options.Kinds-th on they are counted as "other".
// When the queues cannot be read, their gauges are missing from the scrape and the error is counted; nothing else is
// affected.
//
// Reading order: metrics.go, queues.go.
package eddaprom
