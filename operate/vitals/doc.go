// Package vitals reads what hurts Edda's queues in their database, or soon will, and says it in plain English: a
// transaction that keeps dead rows, vacuum that does not come, connections that run out, a write-ahead log that a slot
// keeps, transaction ids that grow old, settings that Edda's pages advise against.
//
//	r, err := vitals.New(pool, vitals.Options{})
//	report, err := r.Read(ctx)
//	for _, v := range report.Vitals { // the worst first
//		fmt.Println(v.Level, v.Name, v.Sentence, v.Do)
//	}
//
// A Watch reads them again and again, logs what turns bad and what is good again, and calls a function of yours, such
// as a Webhook. The command "edda vitals" prints a report, and package eddaprom exports it.
//
// # Promise
//
// A Read sends seven small statements in one read-only transaction, whose number of rows does not grow with the number
// of queues. Each ends after five seconds, and after three if it waits for a lock. It reads catalogs, statistics and
// the table queue; it changes nothing, and ends nobody's session: Vital.Do names commands for a person to run. It works
// through a pooler in transaction mode, on a standby, and for a role that may only read the schema. Names and queries
// come from others: a sentence shows them quoted, with what is not printable escaped. No sentence has the text of a
// query, since sentences go to logs and chats; Holder.Query has its first 200 characters, as they are.
//
// # Failures
//
// A role without pg_read_all_stats does not see what the sessions of other roles do, nor since when. The report then
// has the vital Visibility, which says so and names the grant; the rest is judged by what the role does see. Read fails
// if the schema is not there, the role may not read it, or the database does not answer in time. Counts of rows are
// estimates of Postgres.
//
// Reading order: vital.go (what a vital is), reader.go (one look), snapshots.go, tables.go and server.go (what is
// judged how), watch.go and webhook.go (alarms).
package vitals
