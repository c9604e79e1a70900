// Command bench measures Edda against hand-written peers that do the same work on the same server.
//
// A figure that it prints was earned: the server is durable, every run's effects are counted in SQL afterwards, and a
// wrong count, a deadlock or a peer too weak to prove anything ends the program with exit code 1.
//
// order.go is the work, peer.go what a peer is, run.go how one is measured, report.go what is printed; kept.go is
// backlog and timers, whose queues serve all rounds. Then a peer a file: ceiling.go (with ceiling_batch.go), single.go,
// watermillsql.go (with its adapters), river.go, floor.go, and edda.go. The scheduler has no peers: schedule.go (with
// its work and its report). README.md explains workloads, peers and output to those who only run it.
package main
