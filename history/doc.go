// Package history keeps what happened: each attempt of a message and each version of a saga instance, written in the
// transaction that made it true. Nothing in Edda reads it back to decide anything, so history can be off, sampled or
// emptied at any time, and messages are handled as before.
//
//	b, err := bus.New(pool, bus.Options{History: history.Options{Level: history.States, Sample: 0.1}})
//	m, err := operator.History().Message(ctx, id)                // where a message is, and its attempts
//	lives, err := operator.History().Lives(ctx, "order", "7", 1) // whose versions Timeline has
//
// Each transaction of an endpoint writes one row, a [Page]: all its messages, and the instances that they changed,
// packed into one value. An instance's row remembers the page that has its last version, and each version names the
// page of the one before. So a timeline is a walk from the newest version back, and a version costs no entry of an
// index. A message is found by the ranges of ids that each page covers: ids of version 7 come in the order of time, so
// a page has few ranges. An instance is in one of them where its row does not name the page: when an attempt failed, or
// changed nothing. An instance that has ended has a row in a table of lives.
//
// All tables are rings of four slots, of which the oldest is emptied by TRUNCATE. The package owns the tables history,
// history_range and history_life; package persistence owns the column of an instance's row.
package history
