package migrations

import (
	"context"
	"errors"

	"github.com/pressly/goose/v3/database"

	"github.com/edda-go/edda/internal/base/pg"
)

// store gives goose the contents of the table migration. The table is created before goose starts, and each migration
// inserts its own row (see apply), so store only reads.
type store struct{ statements pg.Statements }

var _ database.StoreExtender = store{}

var errForwardOnly = errors.New("there are no down migrations")

// Tablename is only used in goose's messages.
func (store) Tablename() string { return "migration" }

// TableExists returns true: see prepare.
func (store) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// CreateVersionTable is never called, because the table exists.
func (store) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

// Insert does nothing: apply inserts the row before it runs the migration.
func (store) Insert(context.Context, database.DBTxConn, database.InsertRequest) error { return nil }

// Delete returns an error, because there are no down migrations.
func (store) Delete(context.Context, database.DBTxConn, int64) error { return errForwardOnly }

// ListMigrations returns the applied versions, newest first, and the version 0 that goose expects in every database.
func (s store) ListMigrations(ctx context.Context, db database.DBTxConn) (_ []*database.ListMigrationsResult,
	err error) {
	rows, err := db.QueryContext(ctx, s.statements.Get("versions"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var list []*database.ListMigrationsResult
	for rows.Next() {
		applied := &database.ListMigrationsResult{IsApplied: true}
		if err := rows.Scan(&applied.Version); err != nil {
			return nil, err
		}
		list = append(list, applied)
	}
	return append(list, &database.ListMigrationsResult{IsApplied: true}), rows.Err()
}

// GetLatestVersion returns the newest applied version, or 0.
func (s store) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	list, err := s.ListMigrations(ctx, db)
	if err != nil {
		return 0, err
	}
	return list[0].Version, nil
}

// GetMigration serves goose's own status, which this package does not use.
func (s store) GetMigration(context.Context, database.DBTxConn, int64) (*database.GetMigrationResult, error) {
	return nil, database.ErrNotImplemented
}
