package main

import "strings"

// statements reads the `-- name:` blocks of a .sql file and puts the schema in place of :schema.
func statements(text, schema string) map[string]string {
	blocks := map[string]string{}
	for block := range strings.SplitSeq("\n"+text, "\n-- name: ") {
		name, body, found := strings.Cut(block, "\n")
		if found && strings.TrimSpace(name) != "" {
			blocks[strings.TrimSpace(name)] = strings.ReplaceAll(body, ":schema", schema)
		}
	}
	return blocks
}
