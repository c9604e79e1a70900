package vitals_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The part that the example leaves out: the pgxpool.Pool of a program, with the tables of Edda.

var check = pgtest.Must

func openPool() (ctx context.Context, pool *pgxpool.Pool, end func()) {
	ctx = context.Background()
	s, err := server()
	check(err)
	pool, err = pgxpool.New(ctx, s.DSN())
	check(err)
	check(migrations.Up(ctx, pool, migrations.Options{}))
	return ctx, pool, pool.Close
}

// One Read of the conditions that slow down the queues: the worst first, with the remedies.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	reader, err := vitals.New(pool, vitals.Options{})
	check(err)
	report, err := reader.Read(ctx)
	check(err)
	for _, v := range report.Vitals {
		if v.Name == vitals.Autovacuum { // v.Sentence describes it, and v.Do is the remedy
			fmt.Println(v.Name, "is", v.Level)
		}
	}
	// Output: autovacuum is ok
}
