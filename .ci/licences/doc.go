// Command licences writes docs/reference/licences.md: each module that a program with Edda may link, its licence, and
// the packages of Edda that bring it. Its test compares that page with what the modules say, and refuses a licence that
// asks something of a program's own code.
//
//	go run . -write
package main
