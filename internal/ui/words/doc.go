// Package words turns values into the words of the pages: durations, counts, states, and texts from any source. It
// does no I/O and writes no HTML.
package words
