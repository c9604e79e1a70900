// Command vulnerabilities looks for known vulnerabilities that the modules of Edda call, with govulncheck: of each that
// users link or run. The list of them is the module golang.org/x/vulndb, of the version in go.mod, or with -newest of
// today: so it needs the Go module proxy, and not https://vuln.go.dev. One of a dependency is an error. One of the
// standard library is told: a newer Go mends it, and which Go a program is built with is its own choice.
//
//	go run . -newest
package main
