package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// Info is how a limit stands, by the database's clock. It is a snapshot, read without a lock.
type Info struct {
	Name     string
	Slots    int       // that may be held at once
	Enabled  int       // slots that can be granted: Slots
	Held     int       // draining ones and the permits of transactions included
	Draining int       // held, and not to be granted again
	Waiting  int       // holders in the line
	Oldest   time.Time // when the first of them came; zero if none waits
	Now      time.Time // the database's clock when it was read
	Declared int       // by the program, last; 0 if none has
	Operated bool      // an operator has set Slots
}

// check returns the error that the SQL function would raise.
func check(name string, slots int) error {
	if slots < 1 || slots > Most {
		return fmt.Errorf("the limit of %.80s is %d, want 1 to %d slots: to stop all work, pause the endpoint",
			name, slots, Most)
	}
	return nil
}

// Set lets n slots of name be held at once, from its commit on, and makes the limit if there is none. It may be a part
// of the caller's transaction. Lowering a limit ends no work. Set waits for transactions that have a permit beyond the
// limit. What a program declares later does not change it, until Reset.
func (s *Store) Set(ctx context.Context, db DB, name string, n int) error {
	if err := check(name, n); err != nil {
		return err
	}
	_, err := s.set(ctx, db, name, &n, false)
	return err
}

// Declare is Set for a program: n takes effect unless an operator has set another number, and is remembered for Reset.
// A number that was declared last changes nothing. It returns the limit in force.
func (s *Store) Declare(ctx context.Context, db DB, name string, n int) (inForce int, err error) {
	if err := check(name, n); err != nil {
		return 0, err
	}
	return s.set(ctx, db, name, &n, true)
}

// Reset returns to the number that a program has declared, and to following it. It is an error if none has.
func (s *Store) Reset(ctx context.Context, db DB, name string) error {
	_, err := s.set(ctx, db, name, nil, false)
	return err
}

func (s *Store) set(ctx context.Context, db DB, name string, n *int, declares bool) (inForce int, err error) {
	if err := db.QueryRow(ctx, s.sql.Get("set"), name, n, declares).Scan(&inForce); err != nil {
		return 0, fmt.Errorf("set the limit of %.80s: %w", name, err)
	}
	return inForce, nil
}

// Exists reports whether there is a limit of that name, by one probe of an index.
func (s *Store) Exists(ctx context.Context, db DB, name string) (yes bool, err error) {
	if err := db.QueryRow(ctx, s.sql.Get("exists"), name).Scan(&yes); err != nil {
		return false, fmt.Errorf("look for the limit of %.80s: %w", name, err)
	}
	return yes, nil
}

// List returns how the limit of that name stands, or every limit if name is "", in the order of their names.
func (s *Store) List(ctx context.Context, db pg.Queryer, name string) ([]Info, error) {
	rows, err := db.Query(ctx, s.sql.Get("list"), name)
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanInfo)
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	return list, nil
}

func scanInfo(row pgx.CollectableRow) (i Info, err error) {
	var oldest *time.Time
	err = row.Scan(&i.Name, &i.Slots, &i.Enabled, &i.Held, &i.Draining, &i.Waiting, &oldest, &i.Now, &i.Declared,
		&i.Operated)
	if oldest != nil {
		i.Oldest = *oldest
	}
	return i, err
}

// Get is List for one limit. It returns ErrNoLimit if there is none of that name.
func (s *Store) Get(ctx context.Context, db pg.Queryer, name string) (Info, error) {
	list, err := s.List(ctx, db, name)
	if err == nil && (len(list) == 0 || name == "") {
		err = fmt.Errorf("get the limit of %.80q: %w", name, ErrNoLimit)
	}
	if err != nil {
		return Info{}, err
	}
	return list[0], nil
}
