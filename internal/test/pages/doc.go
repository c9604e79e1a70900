// Command pages measures the cost of the pages of eddaui on a large installation: see package big.
//
//	go run ./internal/test/pages            seed, some minutes, and then request every page
//	go run ./internal/test/pages -part 100  a hundredth of it
//
// # Promise
//
// For each page it prints how long its HTML and its JSON took, warm, the best, the median and the worst; how many
// buffers its statements read; and which tables they read from one end to the other. It exits with 1 if the median of a
// page is more than -most, or if a queue was read so.
package main
