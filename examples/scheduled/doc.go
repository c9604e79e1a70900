// Command scheduled shows the scheduler at work.
//
//	go run github.com/edda-go/edda/examples/scheduled@latest            # a night each ten seconds, until Ctrl-C
//	go run github.com/edda-go/edda/examples/scheduled@latest -night 5s
//
// # Manifests
//
//	settle/eur … settle/usd   each night, four at a time in a strict group of two: a saga, keyed by the firing's
//	                          due time, queries the bank, enters the balance, and completes. The run lasts until then
//	report/eur … report/usd   after each settlement of their currency
//	poll                      every five seconds
//	rates                     each second, and its handler fails for good: one run is dead, and holds its manifest
//
// The pages whose address is printed have the manifests and their runs, and buttons to retry or cancel the dead one.
// Start the program a second time beside the first, and kill either: each due time still has one run and one effect.
// "make schedule" does that to a thousand manifests a second, and counts.
//
// Reading order: manifests.go, settlement.go and office.go, main.go.
package main
