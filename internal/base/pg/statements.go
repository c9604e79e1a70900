package pg

import (
	"fmt"
	"strconv"
	"strings"
)

const nameMark = "-- name: "

// Statements are the SQL statements of one package, by name.
type Statements map[string]string

// Load splits the text of a .sql file into its "-- name:" blocks and renders each for the schema. The name stays in
// the statement as its first line: it shows in pg_stat_activity, and tests that break a connection at a named
// statement match it. Load panics if the text is malformed: the text is a constant of the calling package, and a test
// of that package loads it.
func Load(text string, schema Schema) Statements {
	statements := Parse(text)
	for name, sql := range statements {
		statements[name] = schema.Render(sql)
	}
	return statements
}

// Parse is Load for statements that have further marks. Each is rendered by one call of RenderWith: a second pass
// could find marks in the names that the first one has inserted.
func Parse(text string) Statements {
	head, blocks, _ := strings.Cut("\n"+text, "\n"+nameMark)
	if rest := withoutComments(head); rest != "" {
		panic(fmt.Sprintf("sql: text before the first %q: %.40q", nameMark, rest))
	}
	statements := Statements{}
	for block := range strings.SplitSeq(blocks, "\n"+nameMark) {
		name, body, _ := strings.Cut(block, "\n")
		name = strings.TrimSpace(name)
		body = strings.TrimRight(body, "; \t\r\n")
		if name == "" || withoutComments(body) == "" {
			panic(fmt.Sprintf("sql: a block named %q is empty", name))
		}
		if _, twice := statements[name]; twice {
			panic(fmt.Sprintf("sql: two blocks are named %q", name))
		}
		statements[name] = nameMark + name + "\n" + strings.TrimSpace(body)
	}
	return statements
}

// Get returns the statement. It panics if there is no statement of that name: the name is a constant of the calling
// package, and a test of that package uses every one.
func (s Statements) Get(name string) string {
	sql, ok := s[name]
	if !ok {
		panic("no sql statement is named " + strconv.Quote(name))
	}
	return sql
}

func withoutComments(sql string) string {
	var kept []string
	for line := range strings.Lines(sql) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
