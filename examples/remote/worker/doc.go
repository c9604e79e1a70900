// Package worker is the program without a database. It makes the invoices that are submitted, each a file that has the
// idempotency key as its name, so that an invoice which is made again is the same file.
package worker
