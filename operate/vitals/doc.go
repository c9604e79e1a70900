// Package vitals finds conditions in the database that slow down Edda's queues, or soon will, and describes them in
// plain English: a transaction that keeps dead rows, tables that vacuum does not reach, connections that run out,
// write-ahead log that a slot keeps, transaction ids that grow old, settings that Edda's pages advise against.
//
//	r, err := vitals.New(pool, vitals.Options{})
//	report, err := r.Read(ctx)
//	for _, v := range report.Vitals { // the worst first
//		fmt.Println(v.Level, v.Name, v.Sentence, v.Do)
//	}
//
// A Watch reads them at intervals, logs which vitals turn bad and which are good again, and calls a function of
// yours, such as a Webhook. The command "edda vitals" prints a report, and package eddaprom exports it.
//
// # Promise
//
// A Read sends seven small statements in one read-only transaction; the number of rows they return does not grow with
// the number of queues. Each statement ends after five seconds, and after three if it waits for a lock. Read reads
// catalogs, statistics and the table queue; it changes nothing, and ends no session: Vital.Do names commands for a
// person to run. It works through a pooler in transaction mode, on a standby, and for a role that may only read the
// schema. Names and queries were written by others: a sentence shows them quoted, with unprintable characters
// escaped. No sentence has the text of a query, because sentences are sent to logs and chats; Holder.Query has its
// first 200 characters, unchanged.
//
// # Failures
//
// A role without pg_read_all_stats cannot see the activity of other roles' sessions, nor since when it lasts. The
// report then has the vital Visibility with the missing grant; the other vitals are judged by the data that the role
// can see. Read returns an error if the schema does not exist, the role may not read it, or the database does not
// answer in time. Counts of rows are estimates of Postgres.
//
// Reading order: vital.go (the type of a finding), reader.go (one Read), snapshots.go, tables.go and server.go (how
// each vital is judged), watch.go and webhook.go (alarms).
package vitals
