// Package chrome opens a real Chromium for the tests of pages.
//
// # Promise
//
// Open returns the context of a browser that looks as asked, with letters that are drawn alike on every machine. It
// ends with its test.
//
// # Failures
//
// A page that breaks its own policy, throws, or misses a file fails its test, unless the caller says that it is
// harmless.
package chrome
