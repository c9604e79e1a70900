package pg

import "github.com/jackc/pgx/v5"

// Planned, as the first argument of a query, has two effects, whatever the connection's own mode is.
//
// The statement is planned for its arguments each time: a plan kept from an empty table, or made for any filter,
// would read a whole full one. And its results come in binary form. In text form, which pgx.QueryExecModeExec
// requests, the format of a bytea, a timestamp and a float depends on bytea_output, DateStyle and extra_float_digits,
// which an administrator may have set for a database or a role, and pgx reads only the default formats.
const Planned = pgx.QueryExecModeCacheDescribe
