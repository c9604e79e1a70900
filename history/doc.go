// Package history records each attempt of a message and each version of a saga instance, in the transaction that
// commits it. Edda never reads the history to decide anything, so it can be off, sampled or emptied at any time, and
// messages are handled as before.
//
//	b, err := bus.New(pool, bus.Options{History: history.Options{Level: history.States, Sample: 0.1}})
//	m, err := operator.History().Message(ctx, id)                // where a message is, and its attempts
//	lives, err := operator.History().Lives(ctx, "order", "7", 1) // whose versions Timeline has
//
// Each transaction of an endpoint writes one row, a [Page]: all its messages, and the instances that they changed,
// packed into one value. An instance's row contains the id of the page with its last version, and each version
// contains the id of the page with its predecessor. So a timeline is a walk from the newest version back, and a
// version needs no entry of an index. A message is found by the ranges of ids that each page covers: ids of version 7
// are ordered by time, so a page has few ranges. The id of an instance is in a range only if the instance's row does
// not name the page: after an attempt that failed or changed nothing. Each instance of a key is called a life of the
// key; an instance that has ended has a row in a table of lives.
//
// All tables are rings of four slots; a rotation empties the oldest slot with TRUNCATE. The package owns the tables
// history, history_range and history_life; package persistence owns the column of an instance's row.
package history
