// Package option checks options and fills in their defaults.
//
// # Promise
//
// In every struct of options a zero is a default. Each option is one line, which refuses a value out of bounds and puts
// the default in place of a zero. All faults of a struct come back together.
//
// # States
//
// Faults is a list that lives as long as the check of one struct.
//
// # Failures
//
// A fault names the option, its value and its bounds.
package option
