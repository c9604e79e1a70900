package history

import (
	_ "embed"

	"github.com/edda-go/edda/internal/pg"
)

//go:embed statements.sql
var statements string

// Store has the statements of one schema. It has no state and is safe for concurrent use.
type Store struct{ sql pg.Statements }

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }
