package migrations

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pg"
)

//go:embed grants.sql
var grantsSQL string

// Roles are existing roles of the database; "" omits one. docs/operate/roles.md describes them.
type Roles struct {
	Runtime string // runs endpoints, and creates nothing
	Sender  string // sends messages, and reads none
	Reader  string // reads, for tools and dashboards
}

// Grants returns a script for psql, or for one Exec, that gives roles their rights in a schema; "" is "edda". The
// owner of the schema runs it after each Up. It covers existing tables, and queues that are installed later. It
// changes neither other tables of the schema nor rights on the schema except USAGE. Grants returns an error if roles
// names no role, or the same role twice.
func Grants(schema string, roles Roles) (string, error) {
	name, err := pg.ParseSchema(schema)
	if err != nil {
		return "", err
	}
	sql := pg.Parse(grantsSQL)
	script := name.Render(plain(sql.Get("begin"))) + ";\n\n"
	tables := name.Render(plain(sql.Get("tables")))
	seen := map[string]bool{}
	for _, grant := range []struct{ what, sql, role string }{
		{"runtime", sql.Get("runtime"), roles.Runtime}, {"sender", sql.Get("sender"), roles.Sender},
		{"reader", sql.Get("reader"), roles.Reader},
	} {
		if grant.role == "" {
			continue
		}
		if err := checkRole(grant.role); err != nil {
			return "", fmt.Errorf("role %s: %w", grant.what, err)
		}
		if seen[grant.role] {
			return "", fmt.Errorf("role %s: %q has a different part already, and the script of one part revokes the "+
				"other's rights",
				grant.what, grant.role)
		}
		seen[grant.role] = true
		script += name.RenderWith(plain(grant.sql), ":tables", tables,
			":'role'", pg.Literal(grant.role), ":role", pgx.Identifier{grant.role}.Sanitize()) + ";\n\n"
	}
	if len(seen) == 0 {
		return "", errors.New("grants: name at least one role")
	}
	return script + name.Render(plain(sql.Get("end"))) + ";\n", nil
}

// plain returns the statement without its first line, which has its name.
func plain(statement string) string {
	_, text, _ := strings.Cut(statement, "\n")
	return text
}

func checkRole(role string) error {
	switch {
	case len(role) > 63:
		return fmt.Errorf("a name of %d bytes, the limit is 63", len(role))
	case !utf8.ValidString(role) || strings.ContainsFunc(role, unicode.IsControl):
		return errors.New("a name with control characters")
	case role == "public" || role == "none":
		return fmt.Errorf("%q is not a role", role) // Postgres reads them as keywords, even between quotes
	}
	return nil
}
