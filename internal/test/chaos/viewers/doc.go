// Package viewers kills workers and the process that serves the pages of eddaui while fifty pages are open, and
// compares what people see in the end with the tables.
//
//	go run ./internal/test/chaos -scenario viewers
//
// # Promise
//
// When nothing is killed any more, each open page shows what a page that is loaded now shows, and that is what the
// tables say: how many messages wait in each queue, how many letters are dead, the version and the state of instances.
// A job of dead letters whose process is killed goes on in the next one, or has paused and says why. When a job is
// undone, exactly the letters that were not handled are dead again, whenever its process was killed. Each message that
// was sent has one effect.
//
// # How it can know
//
// The parent has fifty streams, each with the fragments that a browser would show, and opens one again when it is cut.
// Pages are compared with counts by SQL. A handler writes its effect into the ledger in the transaction of its message.
//
// # Phases
//
//   - rage: orders flow, of which some die, while workers and the server of the pages are killed.
//   - canary: what made letters die is mended, and a job in stages retries them; the process that runs it is killed.
//   - undo: a job retries letters to an endpoint that is paused, some are handled, and the job is undone; the process
//     that undoes it is killed.
//   - rest: everything is judged while a queue has messages and some letters are dead.
package viewers
