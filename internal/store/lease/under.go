package lease

import (
	"context"
	"fmt"
	"time"
)

// Standing is the state of a lease in a list of several.
type Standing struct {
	Name string
	Left time.Duration // remaining time of its term; 0: it is free
}

// Held reports whether the lease was held when it was read.
func (s Standing) Held() bool { return s.Left > 0 }

// Under returns the state of the leases whose names begin with prefix, in the order of their names, up to 10,000. It
// is one statement that a Line can run, for programs that distribute work among themselves.
func (s *Store) Under(ctx context.Context, db DB, prefix string) ([]Standing, error) {
	if err := CheckName(prefix); err != nil {
		return nil, fmt.Errorf("read the leases under a prefix: %w", err)
	}
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	var (
		names []string
		left  []int64
	)
	if err := db.QueryRow(ctx, s.sql.Get("under"), prefix, end, mostListed).Scan(&names, &left); err != nil {
		return nil, fmt.Errorf("read the leases under %s: %w", prefix, err)
	}
	found := make([]Standing, len(names))
	for i, name := range names {
		found[i] = Standing{Name: name, Left: time.Duration(left[i]) * time.Microsecond}
	}
	return found, nil
}
