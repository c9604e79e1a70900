package pg

import "github.com/jackc/pgx/v5"

// Planned, as the first argument of a query, has two effects, whatever the connection's own mode is.
//
// The statement is planned for its arguments each time: a plan kept from an empty table, or made for any filter, would
// read all of a full one. And what it returns comes in binary form. In text form, which pgx.QueryExecModeExec asks for,
// a bytea, a timestamp and a float look as bytea_output, DateStyle and extra_float_digits say, which an administrator
// may have set for a database or a role, and pgx reads only what they are by default.
const Planned = pgx.QueryExecModeCacheDescribe
