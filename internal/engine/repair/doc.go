// Package repair changes single saga instances for an operator: it replaces a state, ends an instance without its
// handlers, and fires, moves or cancels a timeout. operate.Instances has its methods.
//
// # Promise
//
// Each method is one transaction. It locks the row of the instance first, so it waits for a handler of a pessimistic
// saga that has locked the row. A batch that has read the row without a lock loses its save, and handles its messages
// again with the state that the operator has left. The version grows by one with each change. If the caller names a
// version that is not the present one, the method changes nothing.
//
// The transaction writes an audit entry and a page of the history, the record of one transaction, which shows the
// kind of change (repaired, retimed or stopped) and the actor. Secrets are masked in both. They are the fields that
// the definition marks, or without a definition the fields that the history has masked in the previous version, and
// the parts that Options.Redact removes. Without a definition and a state of the previous version it is unknown which
// parts are secret, and the states are left out, unless Options.Unmasked.
//
// # Failures
//
// If a method returns one of the errors of this package, it has changed nothing. After any other error nothing has
// changed either, unless the connection broke during the commit: check the version.
package repair
