-- The parts of the script for a DBA: psql runs it, a failing statement ends it, and nothing of it stays.
-- name: begin
\set ON_ERROR_STOP on
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE;

-- name: if_missing
SELECT NOT EXISTS (SELECT FROM :schema.migration WHERE version = $1) AS edda_missing \gset
\if :edda_missing
INSERT INTO :schema.migration (version, name, breaking) VALUES ($1, $2, $3);

-- name: end
COMMIT;
