-- name: pin
-- The oldest transaction or snapshot for whose sake Postgres keeps dead rows of this database, and the table of the
-- schema that has most of them. An unfinished transaction ("holds") of any database counts, since each new snapshot
-- begins where the oldest of them does; a snapshot counts in its own database, and that of a standby in all. Some keep
-- nothing and are left out: a plain VACUUM, whose snapshot Postgres disregards; a slot's catalog_xmin, which keeps rows
-- of catalogs alone; a walsender that has a slot, which says the same; this statement. A role that may not read all
-- statistics finds state and xact_start of other roles' sessions NULL.
SELECT h.kind, h.name, coalesce(h.database, ''), coalesce(h.role, ''), coalesce(h.application, ''), coalesce(h.state,
    ''),
       h.xid::text, age(h.xid)::bigint, (extract(epoch FROM clock_timestamp() - h.since) * 1000000)::bigint,
           current_user::text,
       coalesce(q.endpoint, ''), d.name::text, d.dead
FROM (
    SELECT * FROM (
        SELECT CASE WHEN w.pid IS NULL THEN 'session' ELSE 'standby' END AS kind, a.pid::text AS name,
            a.datname::text AS database,
               a.usename::text AS role, a.application_name AS application, a.state, x.xid, x.holds,
                   a.leader_pid IS NULL AS leads, a.xact_start AS since
        FROM pg_stat_activity a
        LEFT JOIN pg_stat_get_wal_senders() w ON w.pid = a.pid
        CROSS JOIN LATERAL (VALUES (a.backend_xid, true), (a.backend_xmin, false)) x(xid, holds)
        WHERE a.pid <> pg_backend_pid() AND (x.holds OR a.datname IS NULL OR a.datname = current_database())
          AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
          AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = a.pid)
        UNION ALL
        SELECT 'prepared transaction', p.gid, p.database::text, p.owner::text, '', '', p.transaction, true, true,
            p.prepared FROM pg_prepared_xacts p
        UNION ALL
        SELECT 'replication slot', s.slot_name::text, NULL, NULL, '', CASE WHEN s.active THEN 'active'
            ELSE 'inactive' END, s.xmin, false, true, NULL
        FROM pg_replication_slots s
    ) a
    WHERE a.xid IS NOT NULL
    ORDER BY age(a.xid) DESC, a.holds DESC, a.leads DESC
    LIMIT 1
) h
CROSS JOIN LATERAL (
    SELECT c.relname AS name, pg_stat_get_dead_tuples(c.oid) AS dead
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :'schema' AND c.relkind = 'r'
    ORDER BY 2 DESC LIMIT 1
) d
LEFT JOIN :schema.queue q ON d.name = 'queue_' || q.id;
