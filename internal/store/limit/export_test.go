package limit

// Statements is the SQL text of the package, for a test that delays a statement.
var Statements = statements
