package migrations

// All returns the migrations that this program has.
var All = all
