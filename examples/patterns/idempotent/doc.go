// Package idempotent takes HTTP requests that may come twice: docs/patterns/idempotent-http.md.
package idempotent
