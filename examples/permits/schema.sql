-- Run once for the schema of our tables and once for the engine's.

-- name: exists
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = :'schema');

-- name: create_schema
CREATE SCHEMA :schema;

-- name: drop_schema
DROP SCHEMA IF EXISTS :schema CASCADE;
