// Package comparison has the Edda side of the pages in docs/comparison, which compare the same program in Edda and in
// another system.
package comparison
