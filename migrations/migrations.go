// Package migrations holds Edda's schema as plain SQL.
//
// Promise: the files, applied in the order of their names, make the whole schema; a file that was
// released is never changed. :schema and :'schema' stand for the schema's name, as identifier and as
// literal. A file whose first line is --! breaking-change must not be met by an older program: every
// program compares the schema's oldest compatible version with Version at start.
//
// The package only embeds the files; migrations/migrate applies them.
package migrations

import "embed"

// Files are the migrations, named <version>_<name>.sql.
//
//go:embed *.sql
var Files embed.FS

// Version is the newest migration this program knows.
const Version = 5
