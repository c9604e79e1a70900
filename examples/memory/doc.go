// Command memory runs the same endpoints on a database, or in memory and without one.
//
//	go run github.com/edda-go/edda/examples/memory@latest            # in memory
//	go run github.com/edda-go/edda/examples/memory@latest -postgres  # DATABASE_URL, or a private Postgres
//
// A saga and handlers without tables are the same in both. A handler that writes to tables of yours has an interface
// between: books.go.
package main
