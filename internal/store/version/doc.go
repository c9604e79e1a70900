// Package version compares the version of a schema with the version that this program needs. It does not link the
// migrations or the tool that applies them: a worker needs only the number.
//
// States of a schema, and the result of Check:
//
//	missing, or older      ErrNotMigrated: an owner applies the files of package migrations
//	equal                  nil
//	newer                  nil: a file may add objects that older programs ignore
//	newer and breaking     ErrTooNew: a file whose first line is "--! breaking-change" was applied
package version
