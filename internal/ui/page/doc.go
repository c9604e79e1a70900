// Package page reads the data of each page. A page is a struct with everything that its template and its JSON need:
// nothing is read while it is written.
//
// # Promise
//
// The package never writes to the database. Each page calls methods of package operate that are bounded, whatever the
// queues hold. Without the right to see bodies a page has neither bodies nor states, so that no template can show
// them.
//
// # Failures
//
// A [Fault] has the answer's status and a text for people. Every other error comes from the database.
//
// Reading order: source.go, then one file for each page.
package page
