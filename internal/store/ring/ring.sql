-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);

-- name: rotate
SELECT :schema.rotate_ring($1::text);

-- name: holder
-- A role without special rights cannot read the query of another user's session, but it can read the session's
-- number.
SELECT format('process %s (%s) has been in a transaction since %s', l.pid, coalesce(nullif(a.application_name, ''),
    'no application_name'),
              coalesce(a.xact_start::text, 'a time that this role may not see'))
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid <> pg_backend_pid() AND l.database = (SELECT d.oid FROM pg_database d
    WHERE d.datname = current_database())
  AND (l.locktype = 'advisory' AND l.classid = 1162101826 AND l.objid = (SELECT DISTINCT r.tableoid FROM :schema.ring r)
    OR l.locktype = 'relation' AND l.relation IN (
        SELECT i.inhrelid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
        WHERE c.relname IN ($1::text, $1::text || '_range', $1::text || '_life')
          AND c.relnamespace = (SELECT t.relnamespace FROM pg_class t
            WHERE t.oid = (SELECT DISTINCT r.tableoid FROM :schema.ring r))))
ORDER BY a.xact_start NULLS LAST LIMIT 1;

-- name: set_keep
UPDATE :schema.ring SET keep = $2::bigint * interval '1 microsecond' WHERE name = $1;

-- name: keep_at_least
UPDATE :schema.ring SET keep = $2::bigint * interval '1 microsecond' WHERE name = $1
    AND keep < $2::bigint * interval '1 microsecond';

-- name: set_most
UPDATE :schema.ring SET most = nullif($2::bigint, 0) WHERE name = $1;

-- name: rings
SELECT r.name, r.slot::int4, (extract(epoch FROM r.keep) * 1000000)::bigint, r.since, coalesce(r.most, 0),
       (SELECT coalesce(sum(:schema.ring_bytes(r.name, s)), 0)::bigint FROM generate_series(0, 3) s)
FROM :schema.ring r ORDER BY r.name;
