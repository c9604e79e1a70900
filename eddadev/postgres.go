package eddadev

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// leastConns suffices for a few endpoints.
const leastConns = 10

// servers are the private servers of this process. A garbage-collected server ends, so this variable keeps them.
var servers struct {
	mu  sync.Mutex
	all []*pgdev.Server // guarded by mu
}

// Connect returns a pool of at least ten connections to the database of DATABASE_URL, or else to a private Postgres
// called name: 1 to 20 lower-case letters, digits, hyphens and underscores. It starts an installed Postgres, unless a
// different process has started the one of this name, and keeps its data in the user's cache directory. The caller
// closes the pool. Connect is safe for concurrent use.
func Connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	dsn, err := DSN(ctx, name)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.MaxConns = max(config.MaxConns, leastConns)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return pool, nil
}

// DSN returns the connection string of the database of Connect. If that is a private Postgres, DSN also prints the
// string to the standard error. It is safe for concurrent use.
func DSN(ctx context.Context, name string) (string, error) {
	server, err := pgdev.Keep(ctx, name, os.Stderr)
	if err != nil {
		return "", fmt.Errorf("a Postgres for development: %w", err)
	}
	servers.mu.Lock()
	defer servers.mu.Unlock()
	servers.all = append(servers.all, server)
	if os.Getenv("DATABASE_URL") == "" {
		whose := ""
		if server.Joined() {
			whose = " (a different program has started it, and it ends with that program)"
		}
		fmt.Fprintf(os.Stderr, "A private Postgres: DATABASE_URL=%s%s\n", server.DSN(), whose)
	}
	return server.DSN(), nil
}

// joined returns the servers that other processes have started.
func joined() []*pgdev.Server {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(servers.all), func(s *pgdev.Server) bool { return !s.Joined() })
}

// keepUp starts a server again whenever the process that had started it ends, until ctx ends.
func keepUp(ctx context.Context, s *pgdev.Server) error {
	for s.Joined() {
		next, err := s.Outlive(ctx, os.Stderr)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		servers.mu.Lock()
		servers.all = append(slices.DeleteFunc(servers.all, func(old *pgdev.Server) bool { return old == s }), next)
		servers.mu.Unlock()
		s = next
	}
	return nil
}
