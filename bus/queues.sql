-- Statements for tools and metrics. They lock nothing, so that no worker waits for whoever looks.

-- name: look
-- Counting must follow the index and end at its limit, whatever the planner believes of a table that has grown
-- or shrunk since it was last analysed.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true);

-- name: depths
SELECT d.queue, d.ready, d.delayed, d.claimed, d.parked, d.oldest, now() FROM :schema.queue_depths($1::int[], $2) d;

-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- The locks that were taken since the savepoint end with it, and it may be rolled back to again.
ROLLBACK TO SAVEPOINT piece;

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
