package eddaui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/internal/ui/page"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// reading opens read-only connections with the configuration of a pool.
type reading struct {
	refused atomic.Bool // a pooler refused the settings
}

// pool returns a pool, which connects at its first use.
func (r *reading) pool(like *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := like.Config().Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, readers
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		c.RuntimeParams["application_name"] = "edda ui"
		if !r.refused.Load() {
			c.RuntimeParams["default_transaction_read_only"] = "on"
			c.RuntimeParams["statement_timeout"] = strconv.FormatInt(readLimit.Milliseconds(), 10)
		}
		if before != nil {
			return before(ctx, c)
		}
		return nil
	}
	//nolint:forbidigo // it connects later, with the contexts of its users
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("make a pool that reads: %w", err)
	}
	return pool, nil
}

// protocolViolation is the SQLSTATE of PgBouncer for a setting that it refuses.
const protocolViolation = "08P01"

// refuses reports whether a pooler has refused the settings of a connection for the first time.
func (r *reading) refuses(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == protocolViolation &&
		strings.Contains(server.Message, "startup parameter") && r.refused.CompareAndSwap(false, true)
}

// read reads a page. Behind a pooler that refuses the settings it reads without them: pages never write, and the
// context bounds the time of a read.
func (u *UI) read(ctx context.Context, p route, ask page.Ask) (page.Page, error) {
	found, err := u.readFitting(ctx, p, ask)
	if u.reading.refuses(err) {
		u.log.InfoContext(ctx, "edda: ui: a pooler takes no settings, pages read without them", "error", err)
		found, err = u.readFitting(ctx, p, ask)
	}
	return found, err
}

// readFitting reads a page if the schema fits this program. In a newer schema the tables may have a different
// meaning.
func (u *UI) readFitting(ctx context.Context, p route, ask page.Ask) (page.Page, error) {
	if err := version.Check(ctx, u.source.Pool, u.schema); err != nil {
		return nil, err
	}
	return p.read(u.source, ctx, ask)
}
