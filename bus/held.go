package bus

import (
	"context"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// held has the resources that a Run gives up when it returns before its handlers. The zero value is ready. Safe for
// concurrent use.
type held struct {
	calls *run.Calls

	mu    sync.Mutex // guards the fields below
	conns map[*pgx.Conn]struct{}
	leave func() // nil: no session
}

// session keeps leave for giveUp, and returns it for an end in order. leave is called once, by the first of the two.
func (h *held) session(leave func()) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave = sync.OnceFunc(leave)
	return h.leave
}

// connections records the connections of a pool that will be made of config, which runs batches.
func (h *held) connections(config *pgxpool.Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = map[*pgx.Conn]struct{}{}
	opened, closing := config.AfterConnect, config.BeforeClose
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		h.mu.Lock()
		h.conns[conn] = struct{}{}
		h.mu.Unlock()
		return opened(ctx, conn)
	}
	config.BeforeClose = func(conn *pgx.Conn) {
		h.mu.Lock()
		delete(h.conns, conn)
		h.mu.Unlock()
		if closing != nil {
			closing(conn)
		}
	}
}

// giveUp ends the session of the process, and the transactions of the batches: when their connections are closed,
// Postgres rolls them back, and other processes can take the messages.
func (h *held) giveUp() {
	h.mu.Lock()
	conns, leave := h.conns, h.leave
	h.conns, h.leave = map[*pgx.Conn]struct{}{}, nil
	h.mu.Unlock()
	for conn := range conns {
		hangUp(conn)
	}
	if leave != nil {
		leave()
	}
}

// hang ends the transaction of one batch, as giveUp does for all.
func (h *held) hang(conn *pgx.Conn) {
	h.mu.Lock()
	delete(h.conns, conn)
	h.mu.Unlock()
	hangUp(conn)
}

// hangUp closes the socket: a handler may be using conn, so conn.Close may not be called.
func hangUp(conn *pgx.Conn) { _ = conn.PgConn().Conn().Close() }
