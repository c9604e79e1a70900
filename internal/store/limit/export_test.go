package limit

// Statements is the text that the package runs, for a test that holds one of them up.
var Statements = statements
