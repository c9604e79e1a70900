// Package big fills a schema with the data of a large installation: millions of messages in queues, a million living
// instances, a hundred thousand dead letters, ten million messages of history, a month of runs. It is for tests of the
// cost of reading.
//
// # Promise
//
// Seed writes rows as the engine would, by statements over sets, and nothing runs afterwards. Names, keys and ids
// follow from numbers, so that a test can compute them. Tables are analysed at the end.
package big
