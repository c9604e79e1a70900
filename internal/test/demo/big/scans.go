package big

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// manyRows is how many rows a table has that is not to be read from one end to the other.
const manyRows = 1000

// Readers returns a pool for pages, whose connections have this application_name.
func (w *World) Readers(ctx context.Context, name string) (*pgxpool.Pool, error) {
	return w.connect(ctx, name, true)
}

func (w *World) connect(ctx context.Context, name string, reads bool) (*pgxpool.Pool, error) {
	config := w.pool.Config().Copy()
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["application_name"] = name
	if reads {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// ReadWhole calls do, and returns the tables of more than 1,000 rows that do read as a whole through the pool of
// Readers. The server's processes report their counters when they end, so ReadWhole ends them before and after.
func (w *World) ReadWhole(ctx context.Context, name string, readers *pgxpool.Pool, do func()) ([]string, error) {
	if err := w.end(ctx, name, readers); err != nil {
		return nil, err
	}
	before, err := w.scans(ctx)
	if err != nil {
		return nil, err
	}
	do()
	if err := w.end(ctx, name, readers); err != nil {
		return nil, err
	}
	after, err := w.scans(ctx)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, table := range slices.Sorted(maps.Keys(after)) {
		if after[table] > before[table] {
			found = append(found, table)
		}
	}
	return found, nil
}

// end ends the connections of the pages, and waits until the server has their counters. Counters of later connections
// are added after that.
func (w *World) end(ctx context.Context, name string, readers *pgxpool.Pool) error {
	readers.Reset()
	err := w.until(ctx, func() (bool, error) {
		left, err := w.number(ctx, "left", name)
		return left == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the end of connections: %w", err)
	}
	before, err := w.number(ctx, "marks", w.schema.Name())
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, w.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, w.sql.Get("mark"))
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	return w.until(ctx, func() (bool, error) {
		now, err := w.number(ctx, "marks", w.schema.Name())
		return now > before, err
	})
}

func (w *World) number(ctx context.Context, name string, args ...any) (n int64, err error) {
	return n, w.pool.QueryRow(ctx, w.sql.Get(name), args...).Scan(&n)
}

// until polls until ask returns true or an error.
func (w *World) until(ctx context.Context, ask func() (bool, error)) error {
	for range 2000 {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if err := run.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the server does not show the counts of its processes")
}

func (w *World) scans(ctx context.Context) (map[string]int64, error) {
	rows, err := w.pool.Query(ctx, w.sql.Get("scans"), w.schema.Name(), manyRows)
	if err != nil {
		return nil, fmt.Errorf("read how tables were read: %w", err)
	}
	found := map[string]int64{}
	var (
		table string
		n     int64
	)
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error {
		found[table] = n
		return nil
	})
	return found, err
}
