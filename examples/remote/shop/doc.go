// Package shop is the program with the database. Its schedule wants an invoice to each customer every second, and it
// has no idea how to make one: it submits the runs to a broker, and takes reports on them.
package shop
