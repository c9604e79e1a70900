-- Names without a schema are our own, found by the search_path; :schema is the engine's.

-- name: lock_run
SELECT pg_advisory_xact_lock(hashtext('permits'));

-- name: create_tables
CREATE SCHEMA IF NOT EXISTS permits;
CREATE TABLE IF NOT EXISTS run (
    one     boolean DEFAULT true CONSTRAINT run_pkey PRIMARY KEY CONSTRAINT run_one CHECK (one),
    lasting interval NOT NULL,
    begun   timestamptz NOT NULL DEFAULT clock_timestamp());
-- No unique constraints on what was done: it must be seen when it is done twice.
CREATE TABLE IF NOT EXISTS effect (
    case_id text NOT NULL, line int NOT NULL, activity text NOT NULL, at timestamptz NOT NULL,
    written timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS firing (
    case_id text NOT NULL, fired timestamptz NOT NULL,
    written timestamptz NOT NULL DEFAULT clock_timestamp());
-- All queues are counted in the snapshot of the calling statement, hence STABLE: messages go from queue to queue in one
-- transaction, and zero means that nothing is left anywhere, no timer either.
CREATE OR REPLACE FUNCTION waiting() RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    q     int;
    n     bigint;
    total bigint := 0;
BEGIN
    FOR q IN SELECT id FROM :schema.queue LOOP
        EXECUTE format('SELECT count(*) FROM %I.queue_%s', ':schema', q) INTO n;
        total := total + n;
    END LOOP;
    RETURN total;
END $$;

-- name: begin_run
-- Does nothing in a run that is continued: its clock goes on.
INSERT INTO run (lasting) VALUES ($1) ON CONFLICT ON CONSTRAINT run_pkey DO NOTHING;

-- name: read_run
SELECT lasting, begun, clock_timestamp() FROM run;

-- name: record_effect
INSERT INTO effect (case_id, line, activity, at) VALUES ($1, $2, $3, $4);

-- name: record_firing
INSERT INTO firing (case_id, fired) VALUES ($1, $2);
