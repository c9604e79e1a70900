// Package pg connects Edda's packages with Postgres: it renders the SQL of .sql files, validates the schema name
// once, opens connections, begins transactions, and reads and writes values in binary form.
//
// Promise: no other package builds SQL text or quotes an identifier. Every transaction of a Pool or a Conn is READ
// COMMITTED, whatever default_transaction_isolation is.
//
// Failures: ParseSchema refuses a schema name that Postgres would cut or refuse. Load panics for a .sql file with a
// block without a name, or with two blocks of one name; that happens when a program is constructed and never while a
// message is handled. Package pgerr classifies errors of statements.
package pg
