// Command part1 is the first part of the tutorial, docs/tutorial/1-a-saga.md: an order, one message, and its state.
package main
