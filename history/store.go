package history

import (
	_ "embed"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
)

//go:embed statements.sql
var statements string

// Store has the statements of one schema. It has no state and is safe for concurrent use.
type Store struct{ sql pg.Statements }

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Keeper has the data that an engine needs to write the history. The zero Keeper writes nothing.
type Keeper struct {
	Store   *Store
	General Options                               // for endpoints without options of their own
	Host    string                                // name of this process
	Redact  func(kind string, text []byte) []byte // returns the part of a body or a state to keep; nil keeps all
}

// NewPage returns a page for the transactions of one goroutine. newID makes UUIDs of version 7.
func (k *Keeper) NewPage(endpoint string, newID func() saga.ID) *Page {
	return &Page{store: k.Store, origin: origin{endpoint: endpoint, host: k.Host}, newID: newID}
}
