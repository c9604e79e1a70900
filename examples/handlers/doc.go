// Package handlers has several handlers and sagas of one message: docs/guide/handlers.md.
package handlers
