// Package whereabouts describes in words where a message is, how it ended, and why it does not proceed. It shows the
// lives of saga instances and the messages that followed from a message. It reads queues, dead letters, discarded
// messages, kept copies and the history. An operator gets a [Reader] from operate.Operator.History.
//
//	m, err := operator.History().Message(ctx, id) // m.Places[0].Says() is a sentence
//	lives, err := operator.History().Lives(ctx, "order", "7", 1)
//	versions, more, err := operator.History().Timeline(ctx, lives[0], saga.ID{}, 20)
//
// # Promise
//
// A method reads one snapshot, takes no locks and never waits. A message is in one place at each moment, so a message
// that moves while a method reads is found once. Queues have no index of ids: a method that searches for messages
// reads all queues, about a second for ten million messages, unless its Reader is from [Reader.Near]. Texts have the
// control characters of their senders: escape them before you show them. A Reader is safe for concurrent use.
//
// # Limits
//
// A message that is in no queue and in no page of the history is Unknown: it was never here, it was handled longer
// ago than the history is kept, or its endpoint, or its conversation, keeps no history.
//
// Reading order: place.go (where a message is, in words), locate.go and near.go (queues), reader.go (one message),
// tree.go (conversations), lives.go (instances), processes.go (what runs endpoints).
package whereabouts
