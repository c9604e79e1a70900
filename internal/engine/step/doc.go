// Package step calls the handler of one message, for every engine.
//
// [Call] runs a handler that does not belong to a saga, [Saga] steps a saga instance, and [Missing] and
// [SettleMissing] decide about a message whose instance does not exist. The outcome of a step is data: the engine
// makes it the fate of the message, and writes the effects. A failure is an outcome, too; no function here returns it
// as an error, except [ErrLeave].
package step
