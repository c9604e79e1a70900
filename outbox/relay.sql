-- Statements of relays that name no queue. A relay looks at its queue with no lock and no transaction that lasts: the
-- lease says which process relays, and the guard of the lease is in the transaction that deletes.

-- name: relay_snapshot
-- A statement of its own before the look: what had ended by then is in the look's snapshot.
SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint FROM pg_current_snapshot() s;
