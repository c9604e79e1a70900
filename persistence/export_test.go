package persistence

import "github.com/edda-go/edda/internal/base/pg"

// Statements and ItemStatements are what the package sends, for tests of plans.
func Statements(s *Store) pg.Statements               { return s.sql }
func ItemStatements[T any](i *Items[T]) pg.Statements { return i.sql }
