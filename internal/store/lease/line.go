package lease

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Line is one connection that nothing else uses, made as those of a pool are: a renewal must not wait until work gives
// a connection back. It is opened when it is first used, and again after it broke. One statement runs at a time; safe
// for concurrent use.
type Line struct {
	config *pgxpool.Config
	turn   chan struct{} // of capacity 1: the goroutine that has put something in has conn
	conn   *pgx.Conn
}

// NewLine makes a Line. It does no I/O, and takes no connection of pool.
func NewLine(pool *pgxpool.Pool) *Line {
	return &Line{config: pool.Config(), turn: make(chan struct{}, 1)}
}

// QueryRow runs sql when the row is scanned.
func (l *Line) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		return l.Do(ctx, func(conn pg.Conn) error { return conn.Row(ctx, sql, args...).Scan(dest...) })
	})
}

// Do calls use with the connection, which is use's own until it returns.
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

// connect opens the connection if there is none. Caller has the turn.
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
