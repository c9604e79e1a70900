// Package eddaui serves pages to observe and operate Edda: an http.Handler over the tables of a schema.
//
//	ui, err := eddaui.New(pool, eddaui.Options{Authorize: mayLook})
//	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
//
// # Promise
//
// GET changes nothing. Every change is a POST from the same site, and needs a right that Authorize has returned;
// without Authorize everyone may look, and no one may change anything. Bodies of messages and states of instances
// need a right of their own. Each change has an entry in the audit with the actor and the reason, in the transaction
// of the change; it uses the pool passed to New.
//
// Pages read with at most four connections of their own, in read-only transactions, each statement for ten seconds at
// most, so that no page can slow the queues. PgBouncer refuses these settings: behind it a page has ten seconds by
// its context, and the role's settings apply. Pages work without JavaScript; with it they update themselves. One
// query a second serves all viewers of a kind of page. Links are relative: any prefix works.
//
// Texts from messages and users are escaped, and control and bidirectional characters are spelt out. The pages load
// nothing from other sites, and a strict Content-Security-Policy forbids it. An update of an open page moves no row
// of a list: new rows wait behind a link.
//
// # Failures
//
// If the schema is not migrated, the role lacks a right or the database does not answer, the page has status 503, and
// the remedy. 403: the actor lacks a right. 404: the named thing does not exist. 400, 409, 413: a form has faults, or
// its target has changed, or it is too large, and nothing was changed.
//
// Reading order: eddaui.go (options), access.go (rights), routes.go (addresses), serve.go (answers), acting.go
// (buttons), look.go (templates).
package eddaui
