// Package outbox tells another system of what an HTTP request has changed: docs/patterns/outbox-http.md.
package outbox
