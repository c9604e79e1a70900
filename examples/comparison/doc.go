// Package comparison has the Edda side of the pages in docs/comparison. Each page shows the same program in Edda and in
// a different system.
package comparison
