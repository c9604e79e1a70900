package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Queryer is implemented by pgx's pools, connections and transactions.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Micros converts d to the parameter of a statement. It rounds up, so that nothing is early.
func Micros(d time.Duration) int64 { return (d + time.Microsecond - 1).Microseconds() }

// NonNil returns b as a parameter that is not NULL, even if b is empty.
func NonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
