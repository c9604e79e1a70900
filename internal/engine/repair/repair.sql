-- name: begin
-- Statements find instances by their keys, and messages by due and id, whatever the planner estimates for their tables.
SELECT now(), session_user::text, set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true);

-- name: end_run
-- For a manifest whose message has started the instance.
SELECT :schema.run_end(ARRAY[$1::uuid], ARRAY[$2::int], ARRAY['cancelled'], ARRAY[$3::text]);

-- name: nudge
-- No data depends on a notification, so its commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), :schema.nudge($1, $2);
