-- name: look
-- A scan of a long queue counts as expensive, and Postgres would compile a statement that finds one row.
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true);

-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- The locks that were taken since the savepoint end with it, and it may be rolled back to again.
ROLLBACK TO SAVEPOINT piece;
