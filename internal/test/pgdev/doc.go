// Package pgdev provides a Postgres for tests, benchmarks and demos, without set-up.
//
// # Promise
//
// Start returns a server that answers, or an error that lists the remedies. In this order it takes
//
//  1. the server that DATABASE_URL names;
//  2. a private, throw-away server made from installed binaries: those in PATH,
//     else the newest of Debian, Red Hat, Alpine or Homebrew;
//  3. the same from binaries that it downloads once into the user's cache directory (see package release), after
//     announcing it, unless EDDA_DOWNLOAD is off;
//  4. the same after "apt-get install postgresql", as root on Debian and after announcing it.
//
// A private server listens on a free port of the loopback, trusts all clients there, and keeps data, socket and log
// in one temporary directory: in memory (/dev/shm) if 8 GiB are free and the data need not be durable, or in TMPDIR,
// if that is set. As root it runs as an unprivileged user, because Postgres refuses to run as root.
//
// Tests share one server per binary and have a schema each, so they run in parallel. A test without a database does
// not skip: it fails with the remedies.
//
//	func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		pool, schema := pgdev.Pool(t), pgdev.Schema(t)
//
// # States
//
// A private server is created (initdb), running, restarting or gone. In each state a watcher process holds the read
// end of a pipe; only our process holds the write end. The kernel closes our end when our process ends: by return,
// panic, os.Exit, SIGKILL or the time limit of go test. The watcher then ends the server and removes its directory.
// Stop only closes the pipe early, so every end takes the same path.
//
// The watcher is a script of thirty lines for the system's sh. The alternative was to run our own binary again and
// catch that in an init function. That would run the init functions of every package a test links before ours; the
// unprivileged user often may not read a test binary, which go test puts into a directory for its owner alone; and
// each server would cost the memory of a second Go process. Every machine that can run Postgres has a shell.
//
// # Failures
//
// If a server does not start, the error has the end of its log. If the watcher itself is killed by SIGKILL, the
// server is not ended.
package pgdev
