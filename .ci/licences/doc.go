// Command licences writes docs/reference/licences.md: each module that a program with Edda may link, its licence, and
// the packages of Edda that need it. Its test compares that page with the modules' licences, and refuses a licence with
// terms for a program's own code.
//
//	go run . -write
package main
