-- name: lock_ring
-- Held until the end of the transaction: the ring does not turn while somebody has written ids that are not committed.
-- The slot is read by a later statement, whose snapshot is younger than the lock.
SELECT pg_advisory_xact_lock_shared(1162101826, tableoid::int) FROM :schema.ring WHERE name = 'inbox';

-- name: claim_received
-- The ids come in order, each once, so that two who claim the same ones wait for each other in one direction only.
-- Nobody writes into the slots that are not the one, so an id is either seen there, or was never there. Each of them is
-- one index scan over the ids, of which most are greater than all that came before, and need not be looked for; the
-- slot that is written into is left to ON CONFLICT. NOT IN is a hashed subplan, whatever joins the planner may use.
-- Which ids are new is only told when not all of them are.
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
-- A statement of its own, because the snapshot of the claim does not show the row that it waited for.
SELECT i.id, i.sum FROM :schema.inbox i WHERE i.source = $1 AND i.id = ANY ($2::uuid[]);

-- name: received
SELECT :schema.received($1::text, $2::text);
