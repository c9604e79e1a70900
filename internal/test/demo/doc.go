// Package demo is what the programs of examples share: flags, help, exit codes and a database.
//
// # Promise
//
// The exit code of a program is 0 when it went well or was asked for help, 1 when it failed, and 2 for wrong flags.
// Every error is printed once, after the name of the program. The context of Run ends with Ctrl-C and SIGTERM.
//
// WithDatabase leaves nothing behind on the server that DATABASE_URL names.
package demo
