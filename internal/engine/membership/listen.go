package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

// listen wakes workers when other processes send a notification. Its connection holds the lock of the session.
func (s *Session) listen(ctx context.Context) error {
	var conn *pgx.Conn
	retry := run.Pauses{First: 100 * time.Millisecond, Most: 10 * time.Second}
	retry.Reopen(ctx, func(ctx context.Context) (err error) {
		conn, err = s.openListening(ctx)
		return err
	}, func(ctx context.Context) error {
		return s.hear(ctx, conn)
	}, func(err error) {
		s.options.Calm.Warn("edda: listening for wake-ups was interrupted, polling continues", "error", err)
	})
	return nil
}

func (s *Session) openListening(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pg.Dial(ctx, s.options.Pool.Config())
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.options.Schema.Channel()}.Sanitize()); err != nil {
		pg.HangUp(ctx, conn)
		return nil, fmt.Errorf("listen: %w", err)
	}
	return conn, nil
}

// hear passes on the notifications of conn until the connection breaks, and acquires the lock of the session on it.
func (s *Session) hear(ctx context.Context, conn *pgx.Conn) (err error) {
	defer pg.HangUp(ctx, conn)
	s.options.Hub.Missed() // notifications that were sent while this process did not listen
	defer s.unlock(ctx)
	for holds := false; ; {
		if !holds {
			if holds, err = s.lock(ctx, conn); err != nil {
				return err
			}
		}
		n, err := pg.Hear(ctx, conn)
		if err != nil {
			return err
		}
		if n != nil {
			s.options.Hub.Hear(n.Payload)
		}
	}
}

// lockEvery is how long a process waits for its own earlier connection before it tries again.
const lockEvery = time.Second

// lock acquires the lock of the session on conn. It does not wait if an earlier connection of this process still
// holds the lock because the server has not noticed its loss: lock ends that connection, and if it may not, lock is
// called again. Until then the process listens, and others notice its death only when the session expires.
func (s *Session) lock(ctx context.Context, conn *pgx.Conn) (holds bool, err error) {
	if time.Since(s.tried) < lockEvery {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var earlier int
	err = conn.QueryRow(limited, s.SQL.Get("lock_session"), s.ID).Scan(&holds, &earlier)
	s.tried = time.Now()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, errors.New("lock the session: its row is missing")
	case err != nil:
		return false, fmt.Errorf("lock the session: %w", err)
	case holds:
		s.tried = time.Time{}
		return true, s.locked(ctx)
	}
	return false, s.endEarlier(ctx, conn, earlier)
}

// endEarlier ends the connection that holds the lock. Before that, the row must record that the lock is not held:
// otherwise other processes would find a death.
func (s *Session) endEarlier(ctx context.Context, conn *pgx.Conn, earlier int) error {
	if err := s.renew(ctx, renewal{within: renewTimeout}); err != nil {
		return fmt.Errorf("record that the session is not locked: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	_, err := conn.Exec(limited, s.SQL.Get("end_earlier"), earlier)
	s.options.Log.Warn("edda: an earlier connection of this process holds the lock of its session and was ended",
		"session", s.ID.String(), "backend", earlier, "error", err)
	if err == nil {
		s.tried = time.Time{}
	} else if conn.IsClosed() {
		return fmt.Errorf("end an earlier connection: %w", err)
	}
	return nil
}
