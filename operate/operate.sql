-- Statements of the operator. Statements that read lock nothing, so that no worker waits for them.

-- name: look
-- A count must follow the index and end at its limit, whatever the planner estimates for a table that has grown or
-- shrunk since it was last analysed.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true);

-- name: depths
SELECT d.queue, d.ready, d.delayed, d.claimed, d.parked, d.oldest, now() FROM :schema.queue_depths($1::int[], $2) d;

-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- This releases the locks that were acquired since the savepoint, and keeps the savepoint for the next piece.
ROLLBACK TO SAVEPOINT piece;

-- name: notify
-- No data depends on a notification, so its commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), :schema.nudge($1, $2);

-- name: end_run
-- For a message that a manifest sent, and that was cancelled.
SELECT :schema.run_end(ARRAY[$1::uuid], ARRAY[$2::int], ARRAY['cancelled'], ARRAY[$3::text]);

-- name: send
SELECT s.message_id, s.duplicate
FROM :schema.send(kind => $1, body => $2, header => $3::text::json, endpoint => $4, id => $5::uuid,
    due => clock_timestamp() + $6::bigint * interval '1 microsecond') s;

-- name: wake
SELECT :schema.nudge($1, :schema.command_queue($2, $3)::text);
