-- Statements of relays that name no queue. A relay reads its queue without a lock and without a long transaction: the
-- lease determines which process relays, and the guard of the lease is in the transaction that deletes.

-- name: relay_snapshot
-- A separate statement before relay_look: changes of transactions that had ended by then are in the snapshot of
-- relay_look.
SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint FROM pg_current_snapshot() s;
