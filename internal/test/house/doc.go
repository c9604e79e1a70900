// Package house has the tests of the repository as a whole: which package may import which, how large packages, types
// and files may be, and that the pages of docs agree with the code.
package house
