package migrations

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/base/pg"
)

//go:embed script.sql
var scriptSQL string

// SQL returns a script for psql that does the same as Up, in one transaction. It may be run again, and on an older
// schema: it applies the missing migrations. A schema of "" is "edda".
func SQL(schema string) (string, error) {
	name, statements, err := load(schema)
	if err != nil {
		return "", err
	}
	parts := pg.Load(scriptSQL, name)
	var script strings.Builder
	add := func(texts ...string) {
		for _, text := range texts {
			script.WriteString(strings.TrimSpace(text) + "\n\n")
		}
	}
	add(parts.Get("begin")+";", preparation(statements)+";", migrationSettings(statements)+";")
	for _, m := range all() {
		row := strings.NewReplacer("$1", strconv.FormatInt(m.Version, 10), "$2", "'"+m.Name+"'", "$3",
			strconv.FormatBool(m.Breaking))
		add(row.Replace(parts.Get("if_missing"))+";", name.Render(m.Text), `\endif`)
	}
	add(parts.Get("end") + ";")
	return script.String(), nil
}
