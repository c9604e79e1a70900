// Package failover tests the claims of docs/operate/backup.md: a standby is promoted while workers run, and a database
// is restored to a point in time.
//
// # Promise
//
// With a synchronous standby no confirmed message is lost, and workers continue by themselves. With an asynchronous one
// the last commits are lost, and may be sent again under their ids. After a restore, messages handled since that point
// are handled again under their ids, and messages sent since are gone.
//
// # How they run
//
// The tests have the build tag failover, because they need pg_basebackup, which not every build of Postgres has:
//
//	make failover
package failover
