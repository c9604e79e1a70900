-- The schema and the table of versions. The lock is there because CREATE … IF NOT EXISTS fails when two sessions run it
-- at once; 1162101825 spells "EDDA". A schema that a DBA has created is not created again, because that would need the
-- right to create schemas.
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

-- The search_path of all that makes tables. Functions, operators and types are those of Postgres then, and not their
-- namesakes in a schema that the session's search_path names first: a check or a default would keep them for good.
-- name: search_path
SET LOCAL search_path = pg_catalog, pg_temp;

-- How long a migration waits for a lock. Every statement of other sessions on that table waits behind it, so this has
-- to be short. It has to be longer than deadlock_timeout (1 s), after which an autovacuum ends itself.
-- name: lock_timeout
SET LOCAL lock_timeout = '2s';

-- The first statement of a migration's transaction: it waits for another process that applies the same migration, and
-- inserts no row if that one has committed.
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
