package deadletter

import "github.com/edda-go/edda/internal/base/pg"

// Statements returns the statements of the package, for tests of plans.
func Statements(s *Store) pg.Statements { return s.sql }
