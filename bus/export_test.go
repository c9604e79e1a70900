package bus

// Statement is one of the package's statements as it is sent, for tests of its plan.
func Statement(b *Bus, name string) string { return b.sql.Get(name) }
