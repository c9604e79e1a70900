// Package pgdev is a Postgres for tests, benchmarks and demos, without set-up.
//
// # Promise
//
// Start returns a server that answers, or an error that lists what to do. In
// this order it takes
//
//  1. the server that DATABASE_URL names;
//  2. a private, throw-away server made from installed binaries: those in PATH,
//     else the newest of Debian, Red Hat, Alpine or Homebrew;
//  3. the same from binaries that it downloads once, after saying so, into the
//     user's cache directory (see package release), unless EDDA_DOWNLOAD is off;
//  4. the same after "apt-get install postgresql", as root on Debian and after
//     saying so.
//
// A private server listens on a free port of the loopback, trusts whoever
// connects there, and keeps data, socket and log in one temporary directory:
// in memory (/dev/shm) where 8 GiB are free and nothing has to be durable, and
// where TMPDIR says, when it is set.
// When we are root it runs as an unprivileged user, because Postgres refuses
// anything else.
//
// Tests share one server a binary and have a schema each, so they run in
// parallel. No test skips for want of a database: it fails with the remedies.
//
//	func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		pool, schema := pgdev.Pool(t), pgdev.Schema(t)
//
// # States
//
// A private server is created (initdb), running, restarting or gone. In each of
// them a watcher process holds the read end of a pipe whose write end only we
// hold. The kernel closes our end when we end: by return, panic, os.Exit,
// SIGKILL or the time limit of go test. The watcher then ends the server and
// removes its directory. Stop does nothing but close the pipe early, so every
// end takes the same path.
//
// The watcher is a script of thirty lines for the system's sh. The other choice
// was to run our own binary again and catch it in an init function. That would
// run the init functions of every package a test links before ours; the
// unprivileged user often may not read a test binary, which go test puts in a
// directory for its owner alone; and each server would cost the memory of a
// second Go process. A shell is on every machine that can run Postgres.
//
// # Failures
//
// A server that does not come up is reported with the end of its log. The
// server lives on when the watcher itself is killed by SIGKILL.
package pgdev
