package limit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Held describes a slot that is held.
type Held struct {
	Name        string
	No          int
	Draining    bool
	Holder      string    // "" for the permit of a transaction
	Since       time.Time // the grant, or the begin of the transaction; zero if this role may not read the latter
	Until       time.Time // the end of the lease; zero for a permit
	Now         time.Time // the database's clock when it was read
	Server      int       // the server process that runs the transaction; 0 if it has just ended
	Application string    // of its connection
}

// HolderOf returns the name of a holder in a process with a session.
func HolderOf(session, owner saga.ID) string { return session.String() + "/" + owner.String() }

// SessionOf returns the session in a name that HolderOf has made.
func SessionOf(holder string) (session saga.ID, ok bool) {
	first, second, _ := strings.Cut(holder, "/")
	session, err := saga.ParseID(first)
	if err == nil {
		_, err = saga.ParseID(second)
	}
	return session, err == nil
}

// Holders returns the held slots of the limit of that name, or of every limit if name is "", in the order of limits
// and slots, at most most slots of each. It locks nothing.
func (s *Store) Holders(ctx context.Context, db pg.Queryer, name string, most int) ([]Held, error) {
	rows, err := db.Query(ctx, s.sql.Get("holders"), name, most)
	if err != nil {
		return nil, fmt.Errorf("list the holders of limits: %w", err)
	}
	held, err := pgx.CollectRows(rows, scanHeld)
	if err != nil {
		return nil, fmt.Errorf("list the holders of limits: %w", err)
	}
	return held, nil
}

func scanHeld(row pgx.CollectableRow) (h Held, err error) {
	var (
		holder                 *string
		server                 *int
		granted, until, begins *time.Time
	)
	if err = row.Scan(&h.Name, &h.No, &h.Draining, &holder, &granted, &until, &h.Now, &server, &h.Application,
		&begins); err != nil {
		return h, err
	}
	if holder != nil {
		h.Holder, h.Until = *holder, until.UTC()
		begins = granted
	}
	if begins != nil {
		h.Since = begins.UTC()
	}
	if server != nil {
		h.Server = *server
	}
	return h, nil
}
