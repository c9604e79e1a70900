package limit_test

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The example of a limit uses a Postgres with the tables.

var (
	exportsServer *pgdev.Server
	exportsPool   *pgxpool.Pool
	// a name for this run only, because DATABASE_URL may name a shared server
	exportsSchema = "example_" + strings.ToLower(rand.Text()[:10])
)

// checkExports fails the example, whose output then differs from the expected output.
func checkExports(err error) {
	if err != nil {
		panic(err)
	}
}

func openExports() (context.Context, *pgxpool.Pool, string) {
	ctx := context.Background()
	var err error
	exportsServer, err = pgdev.Start(ctx, pgdev.Options{})
	checkExports(err)
	exportsPool, err = pgxpool.New(ctx, exportsServer.DSN())
	checkExports(err)
	checkExports(migrations.Up(ctx, exportsPool, migrations.Options{Schema: exportsSchema}))
	return ctx, exportsPool, exportsSchema
}

func closeExports() {
	ctx, cancel := context.WithTimeout(context.Background(), pgdev.Patience(time.Minute))
	defer cancel()
	_, err := exportsPool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{exportsSchema}.Sanitize()+" CASCADE")
	checkExports(err)
	exportsPool.Close()
	checkExports(exportsServer.Stop())
}
