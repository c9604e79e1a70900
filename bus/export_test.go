package bus

import "context"

// Statement is one of the package's statements as it is sent, for tests of its plan.
func Statement(b *Bus, name string) string { return b.sql.Get(name) }

// CleanNow does at once what endpoints do now and then.
func CleanNow(ctx context.Context, b *Bus) { b.cleanOnce(ctx) }
