package batch

import "testing"

// A COMMIT inside quotes or a comment ends no transaction, and an apostrophe in a comment hides no COMMIT.
func TestStatementsThatEndATransactionAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SELECT 1 -- it's one\n; COMMIT":       true,
		"SELECT 1 /* it's one */; COMMIT":      true,
		`SELECT 1 AS "it's"; COMMIT`:           true,
		"SELECT 'it''s'; COMMIT":               true,
		`SELECT E'it\'s'; COMMIT`:              true,
		"SELECT $a$ it's $a$; COMMIT":          true,
		"SELECT $1; COMMIT":                    true,
		"SELECT 1; -- and\n /* then */ COMMIT": true,
		"SELECT 1 -- ; COMMIT":                 false,
		"SELECT 1 /* ; COMMIT */":              false,
		`SELECT 1 AS "; COMMIT"`:               false,
		"SELECT '; COMMIT'":                    false,
		`SELECT E'\'; COMMIT'`:                 false,
		"SELECT $a$; COMMIT $a$":               false,
		"SELECT $$; COMMIT $$":                 false,
	} {
		if got := endsTransaction(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
