package persistence_test

import (
	"context"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

func postgresFixture(t *testing.T, lock bool) fixture {
	t.Helper()
	db := open(t)
	return fixture{
		lock: lock,
		begin: func(ctx context.Context) (storeTx, error) {
			tx, err := db.BeginTx(ctx, pg.ReadCommitted)
			return postgresTx{db.store, tx}, err
		},
		read: func(ctx context.Context, name, key string) (saga.Instance, bool, error) {
			return db.store.Read(ctx, db.Pool, name, key)
		},
		blocked: func(t *testing.T, tx storeTx) { pgtest.AwaitBlocked(t, db.Pool, tx.(postgresTx).tx.Conn()) },
	}
}

// postgresTx is a transaction of Postgres with a store.
type postgresTx struct {
	store *persistence.Store
	tx    pgx.Tx
}

func (p postgresTx) Load(ctx context.Context, refs []persistence.Ref) ([]persistence.Found, error) {
	return p.store.Load(ctx, p.tx, refs)
}

func (p postgresTx) Save(ctx context.Context, writes []persistence.Write) ([]bool, error) {
	return p.store.Save(ctx, p.tx, writes)
}

func (p postgresTx) Commit(ctx context.Context) error   { return p.tx.Commit(ctx) }
func (p postgresTx) Rollback(ctx context.Context) error { return p.tx.Rollback(ctx) }
