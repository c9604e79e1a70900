// Package big fills a schema with as much as a large installation has: millions of messages in queues, a million living
// instances, a hundred thousand dead letters, ten million messages of history, a month of runs. It is for tests of what
// reading costs.
//
// # Promise
//
// Seed writes rows as the engine would, by statements over sets, and nothing runs afterwards. Names, keys and ids
// follow from numbers, so that a test knows what to ask for. Tables are analysed at the end.
package big
