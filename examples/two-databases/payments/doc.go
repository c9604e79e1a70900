// Package payments is the second service: it charges cards when it is asked to, and ships what is paid. It has a
// database of its own and does not know that its orders come from another one.
//
// Read charge.go, ship.go, service.go (what a process of the service runs), tables.sql.
package payments
