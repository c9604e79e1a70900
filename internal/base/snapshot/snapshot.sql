-- Finds holders of dead rows. Both statements read catalog views and the table queue, and lock nothing else.

-- name: holders
-- All holders that keep Postgres from removing dead rows, the oldest first. An unfinished transaction of any database
-- counts, since each new snapshot begins at the oldest of them; a snapshot counts in its own database, and that of a
-- standby in all. Some keep nothing and are left out: a plain VACUUM, whose snapshot Postgres disregards; a walsender
-- with a slot, because the slot is listed; this statement. The catalog_xmin of a slot keeps only rows of catalogs. A
-- role that may not read all statistics gets NULL for other roles' queries.
SELECT h.kind, h.name, coalesce(h.database, ''), coalesce(h.role, ''), coalesce(h.application, ''),
       coalesce(h.state, ''), coalesce(h.xid, ''), h.catalogs, h.transactions,
       (extract(epoch FROM clock_timestamp() - h.since) * 1000000)::bigint, h.queried, coalesce(h.query, '')
FROM (
    SELECT CASE WHEN w.pid IS NULL THEN 'session' ELSE 'standby' END AS kind, a.pid::text AS name,
           a.datname::text AS database, a.usename::text AS role, a.application_name AS application, a.state,
           coalesce(a.backend_xid, a.backend_xmin)::text AS xid, false AS catalogs,
           greatest(age(a.backend_xid), CASE WHEN a.datname IS NULL OR a.datname = current_database()
               THEN age(a.backend_xmin) END)::bigint AS transactions,
           a.backend_xid IS NOT NULL AS holds, a.xact_start AS since, a.query_start AS queried,
           CASE WHEN a.state IS NOT NULL THEN left(a.query, $2::int) END AS query
    FROM pg_stat_activity a
    LEFT JOIN pg_stat_get_wal_senders() w ON w.pid = a.pid
    WHERE a.pid <> pg_backend_pid() AND a.leader_pid IS NULL
      AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
      AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = a.pid)
    UNION ALL
    SELECT 'prepared transaction', p.gid, p.database::text, p.owner::text, '', '', p.transaction::text, false,
           age(p.transaction)::bigint, true, p.prepared, NULL, NULL
    FROM pg_prepared_xacts p
    UNION ALL
    SELECT 'replication slot', s.slot_name::text, NULL, NULL, '', CASE WHEN s.active THEN 'active' ELSE 'inactive' END,
           coalesce(s.xmin, s.catalog_xmin)::text, s.xmin IS NULL, age(coalesce(s.xmin, s.catalog_xmin))::bigint, false,
           NULL, NULL, NULL
    FROM pg_replication_slots s
) h
WHERE h.transactions IS NOT NULL
ORDER BY h.catalogs, h.transactions DESC, h.holds DESC, h.since NULLS LAST, h.kind, h.name LIMIT $1;

-- name: most_dead
-- The table of the schema with the most dead rows for its kind, by Postgres' estimate, and whether it has too many:
-- $1 for a queue, or $2 for any other table, which no take reads from the front.
SELECT coalesce(d.endpoint, ''), d.name, d.dead, current_user::text, d.dead >= d.most
FROM (
    SELECT q.endpoint, c.relname::text AS name, pg_stat_get_dead_tuples(c.oid) AS dead,
           CASE WHEN q.id IS NULL THEN $2::bigint ELSE $1::bigint END AS most
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN :schema.queue q ON c.relname = 'queue_' || q.id
    WHERE n.nspname = :'schema' AND c.relkind = 'r'
) d
ORDER BY d.dead::float8 / d.most DESC LIMIT 1;
