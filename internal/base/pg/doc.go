// Package pg is the plumbing between Edda's packages and Postgres: it renders the SQL that stands in .sql files,
// validates the schema name once, opens connections, begins transactions, and reads and writes values in binary form.
//
// Promise: no other package builds SQL text or quotes an identifier. Every transaction of a Pool or a Conn is READ
// COMMITTED, whatever default_transaction_isolation says.
//
// Failures: a schema name that Postgres would cut or refuse is an error in ParseSchema. A .sql file with a block that
// has no name, or two blocks of one name, is an error in Load, met when a program is constructed and never while a
// message is handled. What an error of a statement means is said by package pgerr.
package pg
