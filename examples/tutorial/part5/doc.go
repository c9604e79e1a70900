// Command part5 is the fifth part of the tutorial, docs/tutorial/5-change.md: the shop changes while it runs.
package main
