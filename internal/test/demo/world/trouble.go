package world

import (
	"context"
	"errors"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Trouble is a schema in a database in trouble: a report has a transaction open, so that Postgres keeps the dead rows
// of a queue. Postgres counts dead rows a moment later. A role that may not see when the transaction began judges it by
// the number of those that came after it, which are many; other roles find it old after a minute.
func Trouble(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.install(ctx, map[string][]string{"reports": {"report.make"}}); err != nil {
		return nil, err
	}
	if err := s.pin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.die(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// session is a connection beside the pool.
func (s *Stage) session(ctx context.Context, application string) (*pgx.Conn, error) {
	config := s.pool.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = application
	return pgx.ConnectConfig(ctx, config)
}

// die leaves dead rows in a queue. Its session ends and with that hands its statistics in.
func (s *Stage) die(ctx context.Context) error {
	sql, err := s.sql("dead rows")
	if err != nil {
		return err
	}
	conn, err := s.session(ctx, "work")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// pin opens a transaction in a session of its own, which lasts until Close.
func (s *Stage) pin(ctx context.Context) error {
	conn, err := s.session(ctx, "monthly report")
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { return conn.Close(context.WithoutCancel(ctx)) })
	_, err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()")
	return err
}
