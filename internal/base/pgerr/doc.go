// Package pgerr classifies errors of Postgres by their SQLSTATE, and adds the remedy that a beginner needs.
//
// Promise: no other package matches the text of an error, or lists the SQLSTATEs of a class. A class depends only on
// the code, so errors of any driver have one; an error without a code is classified by its kind, a lost connection.
//
// Failures: an error that does not come from the database is Other. Explain and ExplainPooler wrap an error and never
// replace it.
package pgerr
