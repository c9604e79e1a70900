// Package partition shares the queues of a partitioned endpoint among the processes that run it.
//
// # Promise
//
// A key belongs to one partition, for ever (Of). One process at a time consumes a partition: the one that holds its
// lease. Processes come to even shares by themselves, without a leader: each has a rank, a lease of the lowest number
// that is free, and every process computes the same shares from the same ranks.
//
// The number of partitions is stored when the endpoint is installed, since messages wait in the partition that it gave
// their key. Another number is refused until Renumber has moved all of them back to the endpoint's own queue.
//
// # States of a partition, in one process
//
//	none      another process has it, or none
//	bidding   its keeper runs, and does not hold the lease yet
//	working   its keeper holds the lease
//	leaving   its keeper was told to end, and its work has not ended
//
// # Failures
//
// What a process sees of the leases may be old; then two bid for one partition, and one wins. The partitions of a
// process that died are free when their leases are over. An error that time does not cure ends Consumer.Run.
package partition
