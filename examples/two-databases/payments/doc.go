// Package payments is the second service: it charges cards on command, and ships paid orders. It has a database of its
// own and does not depend on the database that its orders come from.
//
// Read charge.go, ship.go, service.go (the service in a process), tables.sql.
package payments
