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
