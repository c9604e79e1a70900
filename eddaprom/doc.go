// Package eddaprom exports metrics of a bus, of leases, of the scheduler and of the database to Prometheus.
//
//	metrics := eddaprom.New(eddaprom.Options{})
//	b, err := bus.New(pool, bus.Options{Events: metrics.Observe})
//	…
//	metrics.Watch(operator)        // the depth of the queues, read at a scrape
//	metrics.WatchScheduler(s)      // the work that waits for schedulers, and the leases of s
//	metrics.WatchLeases(singleton) // a Singleton without a Scheduler
//	metrics.WatchVitals(reader)    // conditions of the database that slow the queues, see package operate/vitals
//	prometheus.MustRegister(metrics)
//
// # Promise
//
// Counters follow the bus's events, which follow the commit, so they count only committed work. Counting makes no call
// to the database and never waits. The depth of the queues is read from the database at a scrape, at most once in
// Options.QueueEvery, in a time that does not grow with the backlog. Metrics is safe for concurrent use.
//
// # Metrics
//
//	edda_messages_handled_total       counter    endpoint, saga, kind
//	edda_attempts_failed_total        counter    endpoint, kind          attempts that ended with an error
//	edda_attempts_retried_total       counter    endpoint, kind          failed attempts that were followed by a retry
//	edda_messages_dead_lettered_total counter    endpoint, kind
//	edda_runs_failed_total            counter    endpoint, kind, outcome failed (to be retried) or dead
//	edda_messages_discarded_total     counter    endpoint, kind
//	edda_conflicts_total              counter    endpoint, saga          saves that came second
//	edda_claims_lost_total            counter    endpoint                messages whose claim was lost
//	edda_batches_total                counter    endpoint, result        committed or rolled_back
//	edda_batch_messages               histogram  endpoint                messages that one transaction took
//	edda_batch_seconds                histogram  endpoint                from the take to the commit
//	edda_processing_seconds           histogram  endpoint                the handler's own time for one message
//	edda_critical_seconds             histogram  endpoint                from sent, or due, to committed
//	edda_endpoint_slow                gauge      endpoint                1 while the breaker is open, see event.Slowed
//	edda_endpoint_paused              gauge      endpoint                1 while it is paused
//	edda_messages_relayed_total       counter    endpoint                messages that a relay has published
//	edda_relayed_bytes_total          counter    endpoint                of their bodies
//	edda_relay_lag_seconds            histogram  endpoint                age of the first message of a batch
//	edda_relay_forward_seconds        histogram  endpoint                the time of one call that publishes
//	edda_relay_holding                gauge      endpoint                1 while this process relays
//	edda_messages_ingested_total      counter    source, endpoint, state accepted, repeated, unwanted or dead
//	edda_ingested_unnamed_total       counter    source, endpoint        of them, how many had no id
//	edda_queue_ready, _delayed        gauge      endpoint                messages that are due now, or later
//	edda_queue_claimed, _parked       gauge      endpoint                claimed; behind others of their key
//	edda_queue_oldest_due_seconds     gauge      endpoint                how long the first of them has been due
//	edda_queue_functions_left         gauge      endpoint                functions of the program that do not return
//	edda_queue_read_errors_total      counter                            scrapes that could not read the queues
//
//	edda_lease_holder                 gauge      lease                   1 while this process holds it
//	edda_lease_epoch                  gauge      lease                   the term that this process has, or has read
//	edda_lease_transitions_total      counter    lease, to               terms acquired, released or lost
//	edda_lease_trust_seconds          gauge      lease                   time the term lasts without a renewal
//	edda_lease_sweep_ratio            gauge      lease                   last sweep, as a part of its interval
//	edda_schedule_late_seconds        gauge                              wait of the first due manifest
//	edda_schedule_behind_seconds      gauge                              wait of a queued run for its dispatch
//	edda_schedule_runs                gauge      state                   waiting, queued, active or dead runs;
//	                                                                     timed_out or lost within an hour
//	edda_schedule_manifests           gauge      state                   skipped due times, or orphan, within an hour
//	edda_schedule_read_errors_total   counter                            scrapes that could not read the schedule
//
//	edda_vital_level                  gauge      vital                   0 ok, 1 warn, 2 bad: the worst of the name
//	edda_vital_snapshot_seconds       gauge                              of the oldest that keeps dead rows
//	edda_vital_snapshot_transactions  gauge                              that have begun since
//	edda_vital_dead_rows              gauge      table, endpoint         of the tables that have most, 40 at most
//	edda_vital_connections_used       gauge                              of clients, to the server
//	edda_vital_connections_allowed    gauge                              to roles that are no superusers
//	edda_vital_wal_bytes_per_second   gauge                              between two readings
//	edda_vital_slot_bytes             gauge      slot                    of the write-ahead log that it keeps
//	edda_vital_freeze_ratio           gauge                              age of ids, by when autovacuum freezes
//	edda_vital_tables                 gauge                              of the schema
//	edda_vital_read_errors_total      counter                            scrapes that could not read the vitals
//
// Every process counts its own work: sum the counters over processes. The queues, the schedule and the vitals are the
// same for all processes: take the maximum. A lease has one holder: sum edda_lease_holder, and examine a sum of 0 or
// more than 1. A relay's failures are failed attempts. Ingested messages that are published have an empty endpoint. The
// gauges of an endpoint appear when it is slow or paused for the first time.
//
// # Failures
//
// Kinds come from messages, and a sender may use any kind. A kind that saga.CheckName refuses is counted as "other",
// and so is every kind after the first Options.Kinds. Kinds without a handled message get at most half of those labels,
// so foreign kinds do not displace yours, unless an endpoint handles every kind (bus.HandleRaw). If the queues, the
// schedule or the vitals cannot be read, their gauges are missing from the scrape and the error is counted; no other
// metric is affected.
//
// The folder grafana has alert rules and a dashboard; docs/operate/alerts.md describes how to respond to each alert.
package eddaprom
