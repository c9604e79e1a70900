-- name: look
-- A scan of a long queue counts as expensive, and Postgres would compile a statement that finds one row.
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true);

-- name: look_near
-- What is bounded by an index must be read by it, whatever the planner believes of a table that has grown since it was
-- analysed.
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: index_bytes
-- How large the indexes of these tables are now.
SELECT coalesce(sum(pg_relation_size(i.indexrelid)), 0)::bigint
FROM unnest($1::text[]) t(name) JOIN pg_index i ON i.indrelid = to_regclass(t.name) AND i.indisprimary;

-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- The locks that were taken since the savepoint end with it, and it may be rolled back to again.
ROLLBACK TO SAVEPOINT piece;
