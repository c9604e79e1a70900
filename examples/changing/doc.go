// Package changing has the changes of docs/guide/changing.md: a club of members that has run for a while, and whose
// program changes under way. Its tests run the program before a change, and then the one after it, on one database.
package changing
