// Package words turns values into the words of the pages: durations, counts, states, and texts that came from anywhere.
// It does no I/O and knows no HTML.
package words
