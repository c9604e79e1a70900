package flow

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Reader reads one schema. It is safe for concurrent use.
type Reader struct {
	pool     *pg.Pool
	schema   pg.Schema
	letters  *deadletter.Store
	counters *counters.Store
	history  *history.Store
	routes   *queue.Router
}

// New makes a Reader of a schema; "" is "edda". It does no I/O. It returns an error if the schema's name is invalid.
func New(pool *pgxpool.Pool, schema string) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("new reader of flow: the pool is nil")
	}
	s, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("new reader of flow: %w", err)
	}
	p := pg.Committed(pool)
	return &Reader{p, s, deadletter.New(s), counters.New(s), history.New(s), queue.NewRouter(p, s, nil)}, nil
}
