-- The schema and the table of versions. The lock is needed because CREATE … IF NOT EXISTS fails if two sessions run
-- it at the same time; 1162101825 spells "EDDA". A schema that a DBA has created is not created again, because that
-- would need the right to create schemas.
-- name: prepare
DO $prepare$
BEGIN
    IF current_setting('server_version_num')::int < 140000 THEN
        RAISE EXCEPTION 'Edda needs PostgreSQL 14 or newer, this is %', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    ELSIF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'Edda needs a database in UTF8, this one is in %', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    PERFORM pg_advisory_xact_lock(1162101825, hashtext(:'schema'));
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = :'schema') THEN
        CREATE SCHEMA :schema;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = :'schema' AND tablename = 'migration') THEN
        CREATE TABLE :schema.migration (
            version  bigint CONSTRAINT migration_pkey PRIMARY KEY,
            name     text NOT NULL,
            breaking boolean NOT NULL,
            applied  timestamptz NOT NULL DEFAULT now()
        );
    END IF;
END $prepare$;

-- The search_path while tables are created. It finds the functions, operators and types of Postgres, even if an earlier
-- schema in the session's search_path has the same names: a check or a default would refer to those permanently.
-- name: search_path
SET LOCAL search_path = pg_catalog, pg_temp;

-- How long a migration waits for a lock. Every statement of other sessions on that table waits behind it, so the time
-- must be short. It must be longer than deadlock_timeout (1 s), after which an autovacuum gives up its lock.
-- name: lock_timeout
SET LOCAL lock_timeout = '2s';

-- The first statement of a migration's transaction: it waits for another process that applies the same migration, and
-- inserts no row if that process has committed.
-- name: claim
INSERT INTO :schema.migration (version, name, breaking) VALUES ($1, $2, $3) ON CONFLICT (version) DO NOTHING;

-- name: exists
SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = :'schema' AND tablename = 'migration');

-- name: applied
SELECT version, name, breaking, applied FROM :schema.migration ORDER BY version DESC;

-- name: versions
SELECT version FROM :schema.migration ORDER BY version DESC;

-- The oldest transaction with a lock on a table of the schema. Postgres hides the sessions of other roles from a role
-- without pg_read_all_stats.
-- name: holder
SELECT format('session %s of %s (%s) has had a lock on table %s%s', a.pid, coalesce(a.usename, 'an unknown role'),
    coalesce(nullif(a.application_name, ''), 'no application_name'), c.relname,
    coalesce(' since ' || a.xact_start::timestamptz(0)::text, ''))
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.locktype = 'relation' AND c.relkind IN ('r', 'p') AND a.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :'schema')
ORDER BY a.xact_start NULLS LAST LIMIT 1;
