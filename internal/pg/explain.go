package pg

import "fmt"

// Explain adds the remedy to the errors that a beginner meets.
func Explain(err error) error {
	switch ClassOf(err) {
	case Unprepared:
		return fmt.Errorf("%w (the schema is not there or too old: call migrate.Up, "+
			"or run the command \"edda migrate up\")", err)
	case Denied:
		return fmt.Errorf("%w (the database role lacks a grant on Edda's schema: "+
			"the command \"edda migrate grants\" prints what roles need)", err)
	}
	return ExplainPooler(err)
}
