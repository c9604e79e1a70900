package persistence

// Statement is one of the package's statements as it is sent, for tests of its plan.
func Statement(s *Store, name string) string { return s.sql.Get(name) }
