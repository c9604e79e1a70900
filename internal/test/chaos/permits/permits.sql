-- name: open_batch
-- A session of the process with a transaction that waits for its client, has an id, and holds a lock on a queue. It has
-- the id because it locked rows there: to read a queue without finding anything assigns none. state_change shows
-- whether the session has moved between two looks.
SELECT a.pid, ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32 << 32) | a.backend_xid::text::bigint)::text,
       a.state_change::text
FROM pg_stat_activity a
JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'relation' AND l.mode = 'RowShareLock' AND l.granted
JOIN pg_class c ON c.oid = l.relation AND c.relname ~ '^queue_[0-9]+$'
WHERE a.application_name = $1 AND a.datname = current_database()
  AND a.state = 'idle in transaction' AND a.backend_xid IS NOT NULL
ORDER BY a.pid, c.relname LIMIT 1;

-- name: outcome
-- Null when Postgres has forgotten the transaction, which takes millions of them.
SELECT coalesce(pg_xact_status($1::text::xid8), 'forgotten');
