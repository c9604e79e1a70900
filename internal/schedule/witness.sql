-- name: create
CREATE SCHEMA witness;
CREATE TABLE witness.effect (manifest text NOT NULL, due timestamptz NOT NULL, run uuid NOT NULL);

-- name: count
INSERT INTO witness.effect (manifest, due, run) VALUES ($1, $2, $3);

-- name: lock_holder
-- Ends the session that holds the evaluation's lock, if somebody holds it at this moment.
SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint << 32) | l.objid::bigint = $1;

-- name: behind
-- What is still to come until the horizon: manifests that have not passed it, and runs that are open.
SELECT (SELECT count(*) FROM edda.manifest m WHERE m.due <= $1),
       (SELECT count(*) FROM edda.run r WHERE r.due <= $1 AND r.state IN ('waiting', 'queued', 'active'));

-- name: judge
WITH expected AS (
    SELECT m.id, m.name, s.due FROM edda.manifest m
    CROSS JOIN LATERAL (SELECT min(r.due) AS first FROM edda.run r WHERE r.manifest_id = m.id) f
    CROSS JOIN LATERAL generate_series(f.first, $1::timestamptz, interval '1 second') s(due)),
runs AS (
    SELECT r.manifest_id AS id, r.due, count(*) AS n, count(*) FILTER (WHERE r.state <> 'succeeded') AS open
    FROM edda.run r WHERE r.due <= $1 GROUP BY 1, 2),
effects AS (SELECT e.manifest, e.due, count(*) AS n FROM witness.effect e WHERE e.due <= $1 GROUP BY 1, 2)
SELECT count(*), count(*) FILTER (WHERE r.n IS NULL OR e.n IS NULL),
    (SELECT coalesce(sum(x.n - 1), 0) FROM runs x) + (SELECT coalesce(sum(x.n - 1), 0) FROM effects x),
    (SELECT coalesce(sum(x.open), 0) FROM runs x),
    (SELECT count(*) FROM runs x) - count(r.n)
FROM expected x LEFT JOIN runs r ON r.id = x.id AND r.due = x.due LEFT JOIN effects e ON e.manifest = x.name
    AND e.due = x.due;
