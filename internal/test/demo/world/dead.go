package world

import (
	"context"
	"errors"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Dead makes a schema with the given number of dead letters, of the given number of causes.
func Dead(ctx context.Context, pool *pgxpool.Pool, schema string, letters, causes int) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{})
	if err != nil {
		return nil, err
	}
	err = s.install(ctx, map[string][]string{
		"payments": {"payment.charge"}, "mails": {"mail.send"}, "erp": {"invoice.export"},
	})
	if err != nil {
		return nil, err
	}
	if err := s.exec(ctx, "ids"); err != nil {
		return nil, err
	}
	return s, errors.Join(s.exec(ctx, "dead", letters, causes), s.exec(ctx, "every group", causes))
}
