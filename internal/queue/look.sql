-- Reads for tools. They lock nothing.

-- name: peek
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header,
       substring(q.body FROM 1 FOR $4::int),
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), octet_length(q.body),
       q.last_error
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

-- name: find
-- What a queue knows of one message, as often as it has it. The queue is read from one end to the other: it has no
-- index of ids. $2 is how much of the body.
SELECT m.due, m.id, m.sent, m.first_failed, m.attempt, m.conflict, m.kind, m.header,
       substring(m.body FROM 1 FOR $2::int),
       octet_length(m.kind) + octet_length(m.header) + octet_length(m.body), now(), octet_length(m.body), m.last_error,
       coalesce(m.lane, ''), coalesce(m.claim, 0), m.owner, m.was_due, coalesce(m.cancelled, ''), coalesce(m.deaths, 0),
       coalesce(m.deaths_alone, 0)
FROM (
    SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, q.last_error,
           NULL AS lane, q.claim, q.owner, q.was_due, q.cancelled, q.deaths, q.deaths_alone
    FROM :queue q WHERE q.id = $1
    UNION ALL
    SELECT p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.last_error, p.key,
           NULL, NULL, NULL, p.cancelled, p.deaths, p.deaths_alone
    FROM :schema.parked p WHERE p.queue = $3 AND p.id = $1) m
ORDER BY m.due
LIMIT 100;
