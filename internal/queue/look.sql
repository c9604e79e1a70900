-- Reads for tools. They lock nothing.

-- name: peek
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header,
       substring(q.body FROM 1 FOR $4::int),
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), octet_length(q.body)
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid)
ORDER BY q.due, q.id
LIMIT $1;

-- name: estimate_ready
-- What the planner believes: reltuples of pg_class, scaled to the present size of the table, and the part of it that
-- the statistics of due put before now.
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due <= now();

-- name: estimate_delayed
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due > now();
