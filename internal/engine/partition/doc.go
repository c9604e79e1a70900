// Package partition shares the queues of a partitioned endpoint among the processes that run it.
//
// # Promise
//
// A key belongs to one partition forever (Of). One process at a time consumes a partition: the holder of its lease.
// Processes reach even shares without a leader: each has a rank, a lease of the lowest free number, and every process
// computes the same shares from the same ranks.
//
// The number of partitions is stored when the endpoint is installed, since messages wait in the partition that this
// number gave their key. A different number is refused until Renumber has moved all messages back to the endpoint's
// own queue.
//
// # States of a partition, in one process
//
//	none      a different process has it, or no process
//	bidding   its keeper runs, and does not hold the lease yet
//	working   its keeper holds the lease
//	leaving   its keeper was told to end, and its work has not ended
//
// # Failures
//
// A process may act on an outdated view of the leases; then two bid for one partition, and one wins. The partitions
// of a process that died become free when their leases end. An error that time does not cure ends Consumer.Run.
package partition
