package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Files are the migrations, named <version>_<name>.sql.
//
//go:embed [0-9]*.sql
var Files embed.FS

// Version is the version of the newest migration in this program.
const Version = 22

// breakingMark is the first line of a migration that older programs must not use.
const breakingMark = "--! breaking-change"

// Migration is one file.
type Migration struct {
	Version  int64
	Name     string // "queues" of 00001_queues.sql
	Breaking bool   // programs without it must not use the schema
	Text     string // SQL with :schema in it
}

// All returns the migrations, oldest first. It panics if a file has an invalid name: the files are part of the
// program, and a test reads them all.
func All() []Migration {
	names, err := fs.Glob(Files, "*.sql") // sorted
	if err != nil {
		panic(err)
	}
	all := make([]Migration, 0, len(names))
	for _, name := range names {
		m, err := read(name)
		if err != nil {
			panic(err)
		}
		all = append(all, m)
	}
	return all
}

func read(file string) (Migration, error) {
	number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || name == "" {
		return Migration{}, fmt.Errorf("migration %q: want a name like 00001_queues.sql", file)
	}
	text, err := Files.ReadFile(file)
	if err != nil {
		return Migration{}, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return Migration{
		Version: version, Name: name, Text: string(text),
		Breaking: strings.TrimSpace(first) == breakingMark,
	}, nil
}
