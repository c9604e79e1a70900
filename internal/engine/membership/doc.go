// Package membership registers this process in the table session, listens for wake-ups, and detects when another
// process has died. It owns the tables session, in_flight and suspect, and every statement that names them.
//
// A [Session] begins when the first endpoint or relay of the process joins, and ends when the last has left. In
// between, the process renews its row, and the connection that listens for wake-ups holds an advisory lock. A process
// whose lock is free or whose row was not renewed in time has died. If no process listens, behind a transaction
// pooler, only the time counts.
//
// A death puts the queues of the dead process into quarantine for ten minutes, in every process. Batches of these
// queues are entered into the in-flight journal, so that the message that kills processes is found.
//
// A failed renewal is logged, and the next one follows in five seconds. A process whose own connection was lost does
// not treat other processes as dead for a while.
package membership
