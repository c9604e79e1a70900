// Package demo is shared by the programs of examples: flags, help, exit codes and a database.
//
// # Promise
//
// The exit code of a program is 0 when it succeeded or printed help, 1 when it failed, and 2 for wrong flags.
// Every error is printed once, after the name of the program. The context of Run ends with Ctrl-C and SIGTERM.
//
// WithDatabase leaves nothing behind on the server of DATABASE_URL.
package demo
