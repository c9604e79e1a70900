// Package ring rotates tables of four partitions, the slots, that are emptied one after another by TRUNCATE, three
// times within the time that their rows are kept. All writers write into one slot. A rotation empties the oldest one,
// and writers go on there.
//
// The package owns the table ring and the functions rotate_ring and ring_tables.
package ring
