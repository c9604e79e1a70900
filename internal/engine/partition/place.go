package partition

import "math/bits"

// Of returns the partition of the messages of key, from 0 to partitions-1. It is FNV-1a of 64 bits with the finalizer
// of MurmurHash3, and will be the same in every later version: waiting messages depend on it. It panics if partitions
// is 0 or less.
func Of(key string, partitions int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * prime
	}
	// FNV gives short keys similar high bits, and those choose the partition.
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	hash ^= hash >> 33
	if partitions < 1 {
		panic("bus: PartitionOf wants at least one partition")
	}
	place, _ := bits.Mul64(hash, uint64(partitions)) // partitions * hash / 2^64, without the bias of a remainder
	return int(place)
}
