// Package scaffold writes a small program to begin with: a saga, a service that answers it, a timeout, and tests.
//
// # Promise
//
// What is written is the package program below this one, with another name, so that it compiles and its tests pass. It
// has no file of somebody else's: the folder is new or empty.
//
// # Failures
//
// A name that Go would refuse as that of a module is refused before anything is written. If a file cannot be written,
// those before it stay.
package scaffold
