package outbox

// SQL is one of the rendered statements, for the tests of their plans.
func (s *Store) SQL(name string) string {
	if sql, ok := s.inbox[name]; ok {
		return sql
	}
	return s.kept.Get(name)
}
