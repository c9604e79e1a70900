package view

import (
	"cmp"
	"strings"

	"github.com/edda-go/edda/migrations"
)

// Migrations shows the migrations of a schema, and the missing ones.
func Migrations(all []migrations.Migration) List {
	return listOf("migrations", "VERSION|NAME|APPLIED|REMARK", all, func(m migrations.Migration) Row {
		return Row{
			JSON: Object{"version", m.Version, "name", m.Name, "applied", timeOrNull(m.Applied), "breaking", m.Breaking,
				"unknown", m.Unknown},
			Cells: []string{wide(m.Version), m.Name, cmp.Or(Moment(m.Applied), "missing"), remark(m)},
		}
	})
}

func remark(m migrations.Migration) string {
	var remarks []string
	if m.Unknown {
		remarks = append(remarks, "of a newer program")
	}
	if m.Breaking {
		remarks = append(remarks, "breaking")
	}
	return strings.Join(remarks, ", ")
}
