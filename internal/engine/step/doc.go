// Package step calls the handler of one message, for every engine.
//
// [Call] runs a handler that is no saga, [Saga] steps a saga instance, and [Missing] and [SettleMissing] decide about a
// message whose instance is not there. The outcome of a step is data: the engine makes it the fate of the message, and
// writes what follows. A failure is an outcome, too; nothing here returns one as an error, except [ErrLeave].
package step
