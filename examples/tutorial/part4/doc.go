// Command part4 is the fourth part of the tutorial, docs/tutorial/4-break-and-repair.md: dead letters are repaired,
// and a killed process goes on.
package main
