-- name: drop_indexes
DROP INDEX :schema.run_entry_idx, :schema.run_due_idx;

-- name: no_lock
-- A session that finds this function before Postgres's gets every lock that it tries.
CREATE FUNCTION chaos.pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';

-- name: count
-- A due time is a number of microseconds in the ledger.
INSERT INTO chaos.effect (key, n) VALUES ($1, (extract(epoch FROM $2::timestamptz) * 1000000)::bigint);

-- name: lock_holder
-- Ends the session that holds the evaluation's lock, if one holds it at this moment.
SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint << 32) | l.objid::bigint = $1;

-- name: behind
-- What is still to come until the horizon: manifests that have not passed it, and runs that are open.
SELECT (SELECT count(*) FROM :schema.manifest m WHERE m.due <= $1)
     + (SELECT count(*) FROM :schema.run r WHERE r.due <= $1 AND r.state IN ('waiting', 'queued', 'active'));

-- name: told
-- Every manifest is due every second, from its first run until the horizon.
INSERT INTO chaos.told (key, n)
SELECT m.name, (extract(epoch FROM s.due) * 1000000)::bigint
FROM :schema.manifest m
CROSS JOIN LATERAL (SELECT min(r.due) AS first FROM :schema.run r WHERE r.manifest_id = m.id) f
CROSS JOIN LATERAL generate_series(f.first, $1::timestamptz, interval '1 second') s(due);

-- name: forget_later
DELETE FROM chaos.effect WHERE n > (extract(epoch FROM $1::timestamptz) * 1000000)::bigint;

-- name: check_runs
WITH runs AS (
    SELECT m.name AS key, (extract(epoch FROM r.due) * 1000000)::bigint AS n, count(*) AS times,
           count(*) FILTER (WHERE r.state <> 'succeeded') AS open
    FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id WHERE r.due <= $1 GROUP BY 1, 2)
SELECT CASE WHEN t.told IS NULL THEN 'strange' WHEN r.times IS NULL THEN 'missing' WHEN r.times > 1 THEN 'double'
    ELSE 'open' END,
       '', format('%s at %s: %s runs, %s of them open', key, to_timestamp(n / 1000000.0), coalesce(r.times, 0),
           coalesce(r.open, 0))
FROM (SELECT key, n, true AS told FROM chaos.told) t FULL JOIN runs r USING (key, n)
WHERE t.told IS NULL OR r.times IS DISTINCT FROM 1 OR r.open > 0
UNION ALL
SELECT 'missing', '', format('manifest %s has no run', m.name) FROM :schema.manifest m
WHERE NOT EXISTS (SELECT FROM :schema.run r WHERE r.manifest_id = m.id);
