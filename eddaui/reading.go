package eddaui

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// readingPool is a pool that connects as another does, and only reads. It connects when it is used first.
func readingPool(pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config().Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, readers
	parameters := config.ConnConfig.RuntimeParams
	parameters["default_transaction_read_only"] = "on"
	parameters["statement_timeout"] = strconv.FormatInt(readLimit.Milliseconds(), 10)
	parameters["application_name"] = "edda ui"
	reader, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("make a pool that reads: %w", err)
	}
	return reader, nil
}
