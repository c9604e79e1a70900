package persistence

import "github.com/edda-go/edda/internal/base/pg"

// Statements and ItemStatements return the SQL of the package, for tests of plans.
func Statements(s *Store) pg.Statements               { return s.sql }
func ItemStatements[T any](i *Items[T]) pg.Statements { return i.sql }
