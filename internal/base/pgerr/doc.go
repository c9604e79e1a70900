// Package pgerr says what an error of Postgres means: its class, by its SQLSTATE, and the remedy that a beginner needs.
//
// Promise: no other package matches the text of an error, or knows the SQLSTATEs that put an error into a class. A
// class depends on the code alone, so errors of any driver have one, and on the kind of an error that has no code: a
// connection that was lost.
//
// Failures: an error that is not of the database is Other. Explain and ExplainPooler wrap an error and never replace
// it.
package pgerr
