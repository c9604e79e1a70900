-- The statements of a Read. No statement locks more than the catalogs and the table queue, and each has a row limit,
-- so that it returns no more rows if there are more queues.

-- name: bound
-- These timeouts end the Read with its transaction if a statement takes too long or waits for a lock.
SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
       set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true);

-- name: server
-- age() of a database counts from the oldest transaction id that its rows may still have. A standby has no log position
-- of its own, only the position that it replays. reserved_connections came with PostgreSQL 16.
SELECT clock_timestamp(), current_user::text, current_database()::text,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       (SELECT coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
           ELSE pg_current_wal_lsn() END, '0/0'), 0)::bigint),
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - coalesce(current_setting('reserved_connections', true), '0')::bigint,
       x.datname::text, x.xids, current_setting('autovacuum_freeze_max_age')::bigint,
       m.datname::text, m.mxids, current_setting('autovacuum_multixact_freeze_max_age')::bigint
FROM (SELECT d.datname, age(d.datfrozenxid)::bigint AS xids FROM pg_database d ORDER BY 2 DESC LIMIT 1) x,
     (SELECT d.datname, mxid_age(d.datminmxid)::bigint AS mxids FROM pg_database d ORDER BY 2 DESC LIMIT 1) m;

-- name: settings
-- The values at the start of a session of this role, because the Read changes some settings for itself.
SELECT s.name, s.reset_val, coalesce(s.unit, '') FROM pg_settings s WHERE s.name = ANY ($1::text[]) ORDER BY s.name;

-- name: connections
-- A role that may not read all statistics reads NULL as backend_type of other roles' sessions.
SELECT coalesce(a.application_name, ''), count(*), (sum(count(*)) OVER ())::bigint
FROM pg_stat_activity a
WHERE a.usesysid IS NOT NULL AND a.datid IS NOT NULL
  AND (a.backend_type = 'client backend' OR a.backend_type IS NULL)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $1;

-- name: tables
-- The tables with the most dead rows, and tables without autovacuum. Statistics are estimates.
SELECT t.name, coalesce(q.endpoint, ''), t.live, t.dead, t.vacuumed, t.off, t.tables, t.offs, t.relations
FROM (
    SELECT r.*, count(*) OVER () AS tables, count(*) FILTER (WHERE r.off) OVER () AS offs,
           row_number() OVER (ORDER BY r.dead DESC, r.name) AS by_dead,
           row_number() OVER (ORDER BY r.off DESC, r.dead DESC, r.name) AS by_off,
           (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = :'schema' AND c.relkind IN ('r', 'p', 'i', 'I')) AS relations
    FROM (
        SELECT c.relname::text AS name, pg_stat_get_live_tuples(c.oid) AS live, pg_stat_get_dead_tuples(c.oid) AS dead,
               greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)) AS vacuumed,
               NOT coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) o
                   WHERE o.option_name = 'autovacuum_enabled'), true) AS off
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = :'schema' AND c.relkind = 'r'
    ) r
) t
LEFT JOIN :schema.queue q ON t.name = 'queue_' || q.id
WHERE t.by_dead <= $1 OR t.off AND t.by_off <= $1
ORDER BY t.dead DESC, t.name;

-- name: slots
SELECT s.slot_name::text, s.active, pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
    ELSE pg_current_wal_lsn() END, s.restart_lsn)::bigint
FROM pg_replication_slots s WHERE s.restart_lsn IS NOT NULL ORDER BY s.restart_lsn, 1 LIMIT $1;
