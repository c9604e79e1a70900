-- name: begin_piece
SAVEPOINT piece;

-- name: unlock_piece
-- The locks that were taken since the savepoint end with it, and it may be rolled back to again.
ROLLBACK TO SAVEPOINT piece;
