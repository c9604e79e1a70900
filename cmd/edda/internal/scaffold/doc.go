// Package scaffold writes a small program to begin with: a saga, a service that answers it, a timeout, and tests.
//
// # Promise
//
// The written program is the package program below this one, with a different name, so it compiles and its tests pass.
// The folder contains no other files, because it is new or was empty.
//
// # Failures
//
// Before anything is written, Write refuses a name that is not valid for a Go module. If a file cannot be written, the
// files before it stay.
package scaffold
