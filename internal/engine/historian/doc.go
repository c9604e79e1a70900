// Package historian writes the history of an endpoint's transactions: it makes of messages and their fates what package
// history keeps.
package historian
