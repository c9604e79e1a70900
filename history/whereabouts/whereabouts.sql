-- name: look
-- The planner takes the scan of a long queue for expensive, and would compile a statement that finds one row.
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true);

-- name: look_near
-- Reads that an index bounds must use it, even if the planner's statistics are older than the growth of the table.
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: index_bytes
-- The present size of the indexes of these tables.
SELECT coalesce(sum(pg_relation_size(i.indexrelid)), 0)::bigint
FROM unnest($1::text[]) t(name) JOIN pg_index i ON i.indrelid = to_regclass(t.name) AND i.indisprimary;

-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- Releases the locks that were taken since the savepoint; the transaction may roll back to it again.
ROLLBACK TO SAVEPOINT piece;
