// Package page reads what each page shows. A page is a struct with everything that its template needs and its JSON
// prints: there is nothing else to ask for while it is written.
//
// # Promise
//
// Nothing here writes. Each page calls methods of package operate that are bounded, whatever the queues hold. Without
// the right to see bodies a page has neither bodies nor states, so that no template can show them.
//
// # Failures
//
// A [Fault] has the answer's status and a text for people. Every other error is one of the database.
//
// Reading order: source.go, then one file for each page.
package page
