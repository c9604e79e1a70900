package pgerr

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Explain adds the remedy to errors that beginners often get.
func Explain(err error) error {
	switch ClassOf(err) {
	case Unprepared:
		return fmt.Errorf("%w (the schema is missing or too old: call migrations.Up, "+
			"or run the command \"edda migrate up\")", err)
	case Denied:
		return fmt.Errorf("%w (the database role lacks a grant on Edda's schema: "+
			"run \"edda migrate grants\" and its script)", err)
	}
	return ExplainPooler(err)
}

// refusedToStart reports whether a connection was refused because of a setting that it requested, which Postgres
// supports and a pooler does not.
func refusedToStart(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) && Code(err) == "08P01"
}

// ExplainPooler adds the remedy to errors caused by a pooler between the client and Postgres. It returns any other
// error unchanged.
func ExplainPooler(err error) error {
	switch {
	case ClassOf(err) == Mispooled:
		return fmt.Errorf("%w (a pooler such as PgBouncer gives each transaction a different session: add "+
			"default_query_exec_mode=cache_describe to the connection string, and set PollOnly, or in bus.Options "+
			"Wakeup to bus.PollOnly)", err)
	case refusedToStart(err):
		return fmt.Errorf("%w (a pooler such as PgBouncer refuses settings it does not know: set Wakeup to "+
			"PollOnly, and give the role the settings that the connection string has)", err)
	}
	return err
}
