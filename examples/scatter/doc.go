// Command scatter shows a hot saga: one instance sends 1,000 requests and gathers 1,000 replies, in each of five
// designs once.
//
//	go run ./examples/scatter
//	go run ./examples/scatter -requests 100000
//
// The designs are in package gather: read gather/gather.go. At the end SQL compares the result of every run with what
// it must be; the exit code is 1 if one is wrong. docs/guide/hot-sagas.md says which design costs what, and
// bench/scatter measures it.
package main
