-- name: lock_ring
-- Held until the end of the transaction: the ring does not rotate while ids are uncommitted. A later statement reads
-- the slot, so its snapshot is newer than the lock.
SELECT pg_advisory_xact_lock_shared(1162101826, tableoid::int) FROM :schema.ring WHERE name = 'inbox';

-- name: claim_received
-- The ids come in order, each once, so that two transactions that claim the same ids wait for each other in one
-- direction only. No transaction writes into the three other slots, so an id is either visible there, or was never
-- recorded there. Each of these slots costs one index scan over the ids; most ids are greater than all earlier ids
-- and need no search. The current slot is left to ON CONFLICT. NOT IN is a hashed subplan, whatever joins the planner
-- may use. The new ids are returned only if not all ids are new.
WITH current AS MATERIALIZED (SELECT r.slot FROM :schema.ring r WHERE r.name = 'inbox' LIMIT 1),
seen AS MATERIALIZED (
    SELECT x.id FROM current c CROSS JOIN LATERAL (
        SELECT i.id FROM :schema.inbox_0 i WHERE c.slot <> 0 AND i.source = $1 AND i.id = ANY (ARRAY(
            SELECT u.id FROM unnest($2::uuid[]) u(id)
            WHERE u.id <= (SELECT m.id FROM :schema.inbox_0 m WHERE m.source = $1 ORDER BY m.id DESC LIMIT 1)))) x
    UNION ALL
    SELECT x.id FROM current c CROSS JOIN LATERAL (
        SELECT i.id FROM :schema.inbox_1 i WHERE c.slot <> 1 AND i.source = $1 AND i.id = ANY (ARRAY(
            SELECT u.id FROM unnest($2::uuid[]) u(id)
            WHERE u.id <= (SELECT m.id FROM :schema.inbox_1 m WHERE m.source = $1 ORDER BY m.id DESC LIMIT 1)))) x
    UNION ALL
    SELECT x.id FROM current c CROSS JOIN LATERAL (
        SELECT i.id FROM :schema.inbox_2 i WHERE c.slot <> 2 AND i.source = $1 AND i.id = ANY (ARRAY(
            SELECT u.id FROM unnest($2::uuid[]) u(id)
            WHERE u.id <= (SELECT m.id FROM :schema.inbox_2 m WHERE m.source = $1 ORDER BY m.id DESC LIMIT 1)))) x
    UNION ALL
    SELECT x.id FROM current c CROSS JOIN LATERAL (
        SELECT i.id FROM :schema.inbox_3 i WHERE c.slot <> 3 AND i.source = $1 AND i.id = ANY (ARRAY(
            SELECT u.id FROM unnest($2::uuid[]) u(id)
            WHERE u.id <= (SELECT m.id FROM :schema.inbox_3 m WHERE m.source = $1 ORDER BY m.id DESC LIMIT 1)))) x),
fresh AS (
    INSERT INTO :schema.inbox (slot, source, id, sum)
    SELECT c.slot, $1, u.id, u.sum FROM current c CROSS JOIN unnest($2::uuid[], $3::bigint[]) u(id, sum)
    WHERE u.id NOT IN (SELECT s.id FROM seen s)
    ON CONFLICT DO NOTHING RETURNING id)
SELECT CASE WHEN count(*) < cardinality($2::uuid[]) THEN coalesce(array_agg(f.id), '{}') END FROM fresh f;

-- name: received_sums
-- A separate statement, because the snapshot of the claim does not include the row that the claim waited for.
SELECT i.id, i.sum FROM :schema.inbox i WHERE i.source = $1 AND i.id = ANY ($2::uuid[]);

-- name: received
SELECT :schema.received($1::text, $2::text);
