// Package cluster is a NATS JetStream of one node or three for tests, benchmarks and demos, without set-up.
//
// # Promise
//
// Start returns a cluster whose nodes answer and whose meta leader is elected. Every node is a process of its own,
// which runs the nats-server that is linked into this very binary, so Kill is a SIGKILL and not a polite end. Nodes
// listen on free ports of the loopback and keep what they store in one temporary directory. A node that comes back has
// its name, its ports and its files.
//
// The binary becomes a node when its environment says so. Hence a program or TestMain begins with
//
//	cluster.RunNode() // never returns in a node
//
// and Start refuses to work in a binary that did not.
//
// # States
//
// A node is running, frozen or killed. Freeze is a SIGSTOP: to all who are connected it is a network that is cut. Thaw
// makes a frozen node go on, and Restart a killed one; both return when it has caught up with its peers. Nodes end when
// we end, however we end: they read a pipe whose other end only we hold. One that is frozen at that moment reads
// nothing, and stays.
//
// # Failures
//
// A node that does not come up is reported with the end of its log. A stream of three replicas goes on while one node
// is away; with two away it stops, and nothing that was acknowledged is lost. JetStream writes to files without fsync
// at each message (its default is every two minutes): a killed process loses nothing, a killed
// machine could. With three replicas that takes three machines.
package cluster
