// Command edda looks after Edda's schema in a database: it migrates it, installs the queues of endpoints, shows what
// waits in queues, which saga instances live and what died, sets how much runs at once, shows who holds which lease,
// retries or discards dead letters, and says which sagas are contended.
//
// # Promise
//
// Commands that show something lock nothing, read bounded pages and counts, and never make a worker wait. Texts
// that came with messages are shown with their control characters escaped, so that no message can drive a terminal.
// A password is never printed. With --json the names of fields stay the same from version to version; new ones may
// come.
//
// # Exit codes
//
//	0    done
//	1    it failed, or, for migrate status, the schema is not up to date
//	2    the command line is wrong; nothing was done
//	3    what was named does not exist
//	130  interrupted
//
// Reading order: main.go, root.go, then one file for each group of commands (advice.go decides and advice_rules.go says
// what advise.go prints); print.go and escape.go are how they speak, failure.go is what they say when something goes
// wrong.
package main
