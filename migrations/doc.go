// Package migrations contains Edda's schema as plain SQL, and checks whether a database fits a program.
//
// Promise: the files, applied in the order of their names, make the whole schema. A released file is never changed,
// and there are no down migrations: an error is corrected by a new file. :schema and :'schema' stand for the schema's
// name, as identifier and as literal. The table migration of the schema has one row for each applied file.
//
// States of a schema, and the result of Check in a program that has the files up to Version:
//
//	missing, or older      ErrNotMigrated: apply the files with migrations/migrate
//	equal                  nil
//	newer                  nil: a file may add objects that older programs ignore
//	newer and breaking     ErrTooNew: a file whose first line is "--! breaking-change" was applied
//
// A file may change tables that are in use: package migrate gives each of its statements a lock_timeout, rolls the
// file back if a lock is not free, and tries again. So a file locks few tables, because it keeps each lock until its
// end; it changes queues one transaction at a time, because locks on thousands of tables do not fit into
// max_locks_per_transaction; and it builds no index of a large table. The index of file 16 is an exception: writers
// of discarded wait while it is built, about a second for each million rows.
//
// The package imports only pgx, so a program that only runs endpoints links no migration tool.
package migrations
