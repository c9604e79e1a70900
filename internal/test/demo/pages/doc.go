// Package pages serves the pages of eddaui for the programs of examples, under /edda/ on an address of this machine.
package pages
