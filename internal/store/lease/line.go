package lease

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Line is one connection that is not shared, made like the connections of a pool: a renewal must not wait until other
// work returns a connection. It is opened at the first use, and again after it broke. One statement runs at a time;
// safe for concurrent use.
type Line struct {
	config *pgxpool.Config
	turn   chan struct{} // has capacity 1: the goroutine that has put a value in may use conn
	conn   *pgx.Conn
}

// NewLine returns a Line. It does no I/O, and takes no connection of pool.
func NewLine(pool *pgxpool.Pool) *Line {
	return &Line{config: pool.Config(), turn: make(chan struct{}, 1)}
}

// QueryRow returns a row that runs sql when it is scanned.
func (l *Line) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		return l.Do(ctx, func(conn pg.Conn) error { return conn.Row(ctx, sql, args...).Scan(dest...) })
	})
}

// Do calls use with the connection, which belongs to use until it returns.
func (l *Line) Do(ctx context.Context, use func(conn pg.Conn) error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if err := l.connect(ctx); err != nil {
		return err
	}
	return use(pg.Conn{Conn: l.conn})
}

type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

// connect opens the connection unless it is open. The caller holds turn.
func (l *Line) connect(ctx context.Context) error {
	if l.conn != nil && !l.conn.IsClosed() {
		return nil
	}
	conn, err := pg.Dial(ctx, l.config)
	if err != nil {
		return err
	}
	l.conn = conn
	return nil
}

// Close closes the connection. The Line may be used again.
func (l *Line) Close(ctx context.Context) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.conn != nil {
		pg.HangUp(ctx, l.conn)
		l.conn = nil
	}
}
