// Package presence is this process as the others of the cluster see it, and the others as this process sees them. It
// owns the tables session, in_flight and suspect, and every statement that names them.
//
// A [Session] begins when the first endpoint or relay of the process joins, and ends when the last has left. Between,
// the process renews its row, and holds an advisory lock over the connection that listens for wake-ups. A process whose
// lock is free or whose row was not renewed in time has died. Where no process listens, behind a transaction pooler,
// only the time tells.
//
// A death puts the queues of the dead process into quarantine for ten minutes, in every process. What the endpoints
// then have in hand stands in the in-flight journal, so that the message that kills processes is found.
//
// A failed renewal is logged, and the next one follows in five seconds. A process that cannot reach the database
// believes in no death that it did not see.
package presence
