// Package failover holds the tests of what docs/operate/backup.md says: a standby is promoted while workers run, and a
// database is restored to a point in time.
//
// # Promise
//
// With a synchronous standby nothing is lost that was confirmed, and workers go on by themselves. With an asynchronous
// one the last commits are lost, and may be sent again under their ids. After a restore what was handled since is
// handled again under its id, and what was sent since is gone.
//
// # How they run
//
// The tests have the build tag failover, because they need pg_basebackup, which not every build of Postgres has:
//
//	make failover
package failover
