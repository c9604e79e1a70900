package dedup

import "github.com/edda-go/edda/internal/base/pg"

// Statements are those that the package sends, for tests of plans.
func Statements(s *Store) pg.Statements { return s.sql }
