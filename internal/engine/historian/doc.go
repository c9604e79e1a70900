// Package historian writes the history of an endpoint's transactions: it builds a page of package history, the record
// of one transaction, from messages and their fates.
package historian
