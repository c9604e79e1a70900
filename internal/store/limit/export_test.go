package limit

// Statements is the SQL text of the package, for a test that delays one of the statements.
var Statements = statements
