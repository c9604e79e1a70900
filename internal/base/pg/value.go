package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Queryer is met by pgx's pools, connections and transactions.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Micros is d as the parameter of a statement. It rounds up, so that nothing is early.
func Micros(d time.Duration) int64 { return (d + time.Microsecond - 1).Microseconds() }

// NonNil is b as a parameter that is not NULL, also where b is empty.
func NonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
