// Package eddaui is the pages to see and operate Edda: an http.Handler over the tables of a schema.
//
//	ui, err := eddaui.New(pool, eddaui.Options{Authorize: mayLook})
//	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
//
// # Promise
//
// GET changes nothing. All that changes something is POST, comes from the same site, and needs a right that Authorize
// has given; without Authorize everybody may look, and nobody may do anything else. Bodies of messages and states of
// instances are a right of their own. What is changed has an entry in the audit with the actor and the reason, in the
// transaction of the change; it is done with the pool that New got.
//
// Pages read with at most four connections of their own, in transactions that only read, each statement for ten seconds
// at most, so that no page can hurt the queues. PgBouncer refuses these settings: behind it a page has ten seconds by
// its context, and the role's settings hold. Pages work without JavaScript; with it they follow what happens. One
// query a second serves all viewers of a kind of page. Links are relative: any prefix works.
//
// Texts that came from anywhere are escaped, and control and bidirectional characters are spelt out. The pages load
// nothing from elsewhere, and a strict Content-Security-Policy says so. An update of an open page moves no row of a
// list: what is new waits behind a link.
//
// # Failures
//
// If the schema is not migrated, the role lacks a right or the database does not answer, the page says so with status
// 503, and what to do. 403: the asker may not. 404: what was named is not known. 400, 409, 413: a form is not as it has
// to be, or what it is about has changed, or it is too large, and nothing was done.
//
// Reading order: eddaui.go (options), access.go (who may what), routes.go (addresses), serve.go (answers), acting.go
// (buttons), look.go (templates).
package eddaui
