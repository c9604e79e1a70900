// Package audit stores the changes by operators: who changed something, when and why. Package operate passes the actor
// and the reason, and lists the entries.
//
// Every change by an operator adds an [Entry] in the transaction of the change: both commit or neither does. Exceptions
// are migrations, the installation of endpoints, and a Trigger without an actor, because programs trigger too. A change
// without an effect, such as a second cancel of a run, has no entry. Entries are kept for 400 days.
package audit
