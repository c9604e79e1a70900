-- Statements for tools and metrics. They lock nothing, so that no worker waits for whoever looks.

-- name: look
-- Counting must follow the index and end at its limit, whatever the planner believes of a table that has grown
-- or shrunk since it was last analysed.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true);

-- name: depth
-- All counts stop at the limit: of ten million waiting messages, only the first ones are read. A claimed message is due at the end
-- of its lease, so that the claimed ones are among the first that are not due.
SELECT (SELECT count(*) FROM (SELECT FROM :queue q WHERE q.due <= now() ORDER BY q.due, q.id LIMIT $1) ready),
       (SELECT count(*) FROM (SELECT FROM :queue q WHERE q.due > now() ORDER BY q.due, q.id LIMIT $1) delayed),
       (SELECT count(claimed.owner) FROM (SELECT q.owner FROM :queue q WHERE q.due > now() ORDER BY q.due, q.id LIMIT 10000) claimed),
       (SELECT count(*) FROM (SELECT FROM :schema.parked p WHERE p.queue = $2 LIMIT $1) parked),
       o.due, now()
FROM (SELECT) one
LEFT JOIN LATERAL (SELECT q.due FROM :queue q WHERE q.due <= now() ORDER BY q.due, q.id LIMIT 1) o ON true;

-- name: estimate_ready
-- What the planner believes: reltuples of pg_class, scaled to the present size of the table, and the part of it that
-- the statistics of due put before now.
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due <= now();

-- name: estimate_delayed
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due > now();

-- name: peek
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header,
       substring(q.body FROM 1 FOR $4::int), octet_length(q.body), q.due <= now()
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid)
ORDER BY q.due, q.id
LIMIT $1;
