// Package tutorial follows the pages of docs/tutorial: its tests type what a reader types, and run the programs as
// processes. Folder shop has the program of the last page.
package tutorial
