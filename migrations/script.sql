-- The parts of the script for a DBA: psql runs it, and if a statement fails, psql stops and everything is rolled back.
-- name: begin
\set ON_ERROR_STOP on
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE;
-- If a lock is not free within two seconds ("canceling statement due to lock timeout"), end the transactions that
-- lock the table, and run the script again: a failed run changes nothing.

-- name: if_missing
SELECT NOT EXISTS (SELECT FROM :schema.migration WHERE version = $1) AS edda_missing \gset
\if :edda_missing
INSERT INTO :schema.migration (version, name, breaking) VALUES ($1, $2, $3);

-- name: end
COMMIT;
