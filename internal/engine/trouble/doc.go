// Package trouble decides how an endpoint continues when something fails.
//
// A [Breaker] slows the endpoint down while nothing succeeds. [Patience] computes how long a loop waits after a
// transaction was lost. [Guilty] and [Doubtful] judge by an error whether the only message of its transaction is at
// fault, and [Deaths] whether a message has killed enough processes.
//
// A breaker is closed while messages are handled. After enough failures in a row it is open: one worker tries one
// message at a time. The first message that is handled closes it. Nothing here can fail, except a rollback, which is
// logged: its connection is lost anyway.
package trouble
