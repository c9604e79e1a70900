// Command vulnerabilities runs govulncheck over each module of Edda that users link or run. The list of known
// vulnerabilities is the module golang.org/x/vulndb, in the version of go.mod, or in the newest with -newest: it comes
// from the Go module proxy, and https://vuln.go.dev is not asked. A vulnerability of a dependency that Edda calls is an
// error. A vulnerability of the standard library is only printed, because users choose the Go that they build with.
//
//	go run . -newest
package main
