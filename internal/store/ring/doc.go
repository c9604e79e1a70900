// Package ring rotates tables of four partitions, called slots, which are emptied in turn by TRUNCATE, three times
// within the time that their rows are kept. All writers write into one slot. A rotation empties the oldest one, and
// writers continue there.
//
// The package owns the table ring and the functions rotate_ring and ring_tables.
package ring
