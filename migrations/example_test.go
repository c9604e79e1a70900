package migrations_test

import (
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
)

// The part that the examples leave out: the pgxpool.Pool of a program, to an empty database.
var check, openEmpty = pgtest.Must, pgtest.EmptyExample

// Up may run in several processes at once, and changes nothing in a schema that is up to date.
func ExampleUp() {
	ctx, pool, end := openEmpty()
	defer end()
	check(migrations.Up(ctx, pool, migrations.Options{}))
	check(migrations.Up(ctx, pool, migrations.Options{}))
	all, err := migrations.Status(ctx, pool, migrations.Options{})
	check(err)
	for _, m := range all {
		if m.Applied.IsZero() {
			fmt.Println(m.Name, "is missing")
		}
	}
	fmt.Println(all[0].Version, "is the first")
	// Output: 1 is the first
}

// The rights of a role that runs endpoints, for the owner of the schema to run after each Up.
func ExampleGrants() {
	script, err := migrations.Grants("", migrations.Roles{Runtime: "shop"})
	check(err)
	fmt.Println(strings.Contains(script, "GRANT USAGE ON SCHEMA"))
	// Output: true
}
