// Command edda manages Edda's schema in a database. It migrates the schema, installs the queues of endpoints, shows
// queues, saga instances, dead letters and leases, finds messages and the history of instances, sets limits and
// workers, retries or discards dead letters, and says which sagas are contended. For beginners it writes a program and
// runs a demo, and for containers it checks the health of a program.
//
// # Promise
//
// Commands that show something lock nothing, read bounded pages and counts, and never make a worker wait. Control
// characters in the texts of messages are escaped, so that no message can control a terminal. A password is never
// printed. With --json the names of fields stay the same from version to version; new ones may be added.
//
// # Exit codes
//
//	0    done
//	1    it failed, or, for migrate status, the schema is not up to date
//	2    the command line is wrong; nothing was changed
//	3    the named thing does not exist
//	130  interrupted
//
// Reading order: main.go, root.go, then one file for each group of commands; print.go writes the views of package view,
// and failure.go writes errors.
package main
