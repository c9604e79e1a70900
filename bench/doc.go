// Command bench measures Edda against hand-written peers that do the same work on the same server.
//
// A figure that it prints was earned: the server is durable, every run's effects are counted in SQL afterwards, and a
// wrong count, a deadlock or a peer too weak to prove anything ends the program with exit code 1.
package main
