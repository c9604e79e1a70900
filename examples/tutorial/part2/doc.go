// Command part2 is the second part of the tutorial, docs/tutorial/2-another-service.md: the order asks for its money.
package main
