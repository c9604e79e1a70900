// Package rabbit is a RabbitMQ of one node for tests and chaos runs, without set-up.
//
// # Promise
//
// Start returns a broker that answers. It is the rabbitmq-server that is installed, as a process of its own, with its
// data, its log, its cookie and its epmd in one temporary directory and on free ports of the loopback. So any number of
// them run at a time, beside one of the machine's own. A broker that comes back has its name, its ports and its files.
//
// A process that watches over broker and epmd is this very binary. Hence a program or TestMain begins with
//
//	rabbit.RunNode() // never returns in a node
//
// and Start refuses to work in a binary that did not.
//
// # States
//
// A broker is running, frozen or killed. Kill is a SIGKILL. Freeze is a SIGSTOP: to all who are connected it is
// a network that is cut. Broker and epmd end when we end, however we end and frozen or not: the process that watches
// over them reads a pipe whose other end only we hold.
//
// # Failures
//
// Where there is no rabbitmq-server, Start installs it as root on Debian, and elsewhere fails with a list of what
// helps. A broker that does not come up is reported with the end of its log.
package rabbit
