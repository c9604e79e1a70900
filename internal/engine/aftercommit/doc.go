// Package aftercommit reports the fates of messages after their transaction has committed: [Log] in the log, and
// [Emit] as events. It changes nothing, and cannot fail.
package aftercommit
