package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// Info is the state of a limit, by the database's clock. It is a snapshot, read without a lock.
type Info struct {
	Name     string
	Slots    int       // slots that may be held at once
	Enabled  int       // slots that can be granted: Slots
	Held     int       // draining ones and the permits of transactions included
	Draining int       // held, and not to be granted again
	Waiting  int       // holders in the line
	Oldest   time.Time // when the first of them came; zero if the line is empty
	Now      time.Time // the database's clock when it was read
	Declared int       // the last number that the program declared; 0 without one
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

// Set allows n slots of name to be held at once, from its commit on, and creates the limit if it does not exist. It
// may be a part of the caller's transaction. Lowering a limit ends no work. Set waits for transactions that have a
// permit beyond the limit. Later declarations of a program do not change it, until Reset.
func (s *Store) Set(ctx context.Context, db DB, name string, n int) error {
	if err := check(name, n); err != nil {
		return err
	}
	_, err := s.set(ctx, db, name, &n, false)
	return err
}

// Declare is Set for a program: n takes effect unless an operator has set a different number, and is stored for
// Reset. Declaring the same number again changes nothing. It returns the limit in force.
func (s *Store) Declare(ctx context.Context, db DB, name string, n int) (inForce int, err error) {
	if err := check(name, n); err != nil {
		return 0, err
	}
	return s.set(ctx, db, name, &n, true)
}

// Reset returns to the number that a program has declared, and follows later declarations again. It returns an error
// if no number was declared.
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

// Exists reports whether a limit of that name exists, by one probe of an index.
func (s *Store) Exists(ctx context.Context, db DB, name string) (yes bool, err error) {
	if err := db.QueryRow(ctx, s.sql.Get("exists"), name).Scan(&yes); err != nil {
		return false, fmt.Errorf("look for the limit of %.80s: %w", name, err)
	}
	return yes, nil
}

// List returns the state of the limit of that name, or of every limit if name is "", in the order of their names.
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

// Get is List for one limit. It returns ErrNoLimit if no limit of that name exists.
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
