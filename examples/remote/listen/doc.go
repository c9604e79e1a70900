// Package listen gives the messages of a topic to a handler, by a Router of Watermill. Both programs use it.
package listen
