package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/store/version"
)

// files are the migrations, named <version>_<name>.sql.
//
//go:embed [0-9]*.sql
var files embed.FS

// Version is the version of the newest migration in this program.
const Version = version.Newest

var (
	// ErrNotMigrated means that the schema does not exist, or is older than this program needs.
	ErrNotMigrated = version.ErrNotMigrated
	// ErrTooNew means that a newer program has changed the schema, and this program would damage data.
	ErrTooNew = version.ErrTooNew
)

// breakingMark is the first line of a migration that older programs must not use.
const breakingMark = "--! breaking-change"

// file is one migration, as this program has it.
type file struct {
	Version  int64
	Name     string // "queues" of 00001_queues.sql
	Breaking bool   // programs without it must not use the schema
	Text     string // SQL with :schema in it
}

// all returns the migrations, oldest first. It panics if a file has an invalid name: the files are part of the
// program, and a test reads them all.
func all() []file {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		panic(err)
	}
	read := make([]file, 0, len(names))
	for _, name := range names {
		m, err := parse(name)
		if err != nil {
			panic(err)
		}
		read = append(read, m)
	}
	return read
}

func parse(name string) (file, error) {
	number, rest, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || rest == "" {
		return file{}, fmt.Errorf("migration %q: want a name like 00001_queues.sql", name)
	}
	text, err := files.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return file{
		Version: version, Name: rest, Text: string(text),
		Breaking: strings.TrimSpace(first) == breakingMark,
	}, nil
}
