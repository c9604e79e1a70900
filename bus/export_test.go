package bus

import "context"

// Statement is one of the package's statements as it is sent, for tests of its plan.
func Statement(b *Bus, name string) string { return b.sql.Get(name) }

// CleanNow does at once what endpoints do now and then.
func CleanNow(ctx context.Context, b *Bus) { b.cleanOnce(ctx) }

// CounterStatement is a statement of counters.sql as it is sent.
func CounterStatement(b *Bus, name string) string { return b.counters.Get(name) }

// StoreName is how the counters name a store.
var StoreName = storeName
