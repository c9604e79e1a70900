-- Names without a schema are our own, found by the search_path; :schema is the engine's.

-- name: has_run
SELECT to_regclass('run') IS NOT NULL;

-- name: create_tables
CREATE TABLE run (
    one     boolean DEFAULT true CONSTRAINT run_pkey PRIMARY KEY CONSTRAINT run_one CHECK (one),
    log_sum bytea NOT NULL,
    store   text NOT NULL,
    kills   int NOT NULL, -- that were asked for
    lasting interval NOT NULL,
    begun   timestamptz NOT NULL DEFAULT clock_timestamp());
-- No unique constraints on what was done: it must be seen when it is done twice.
CREATE TABLE effect (
    case_id text NOT NULL, line int NOT NULL, activity text NOT NULL, at timestamptz NOT NULL,
    worker text NOT NULL, written timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE firing (
    case_id text NOT NULL, fired timestamptz NOT NULL,
    worker text NOT NULL, written timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE kill (
    worker text NOT NULL, backend int NOT NULL, xid xid8 NOT NULL, queue text NOT NULL,
    outcome text NOT NULL, -- what Postgres says of the transaction after the kill
    killed timestamptz NOT NULL DEFAULT clock_timestamp());
-- All queues are counted in the snapshot of the calling statement, hence STABLE: messages go from queue to queue in one
-- transaction, and zero means that nothing is left anywhere, no timer either.
CREATE FUNCTION waiting() RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    q     int;
    n     bigint;
    total bigint := 0;
BEGIN
    FOR q IN SELECT id FROM :schema.queue LOOP
        EXECUTE format('SELECT count(*) FROM %I.queue_%s', :'schema', q) INTO n;
        total := total + n;
    END LOOP;
    RETURN total;
END $$;

-- name: begin_run
-- Does nothing in a run that is continued: its clock goes on.
INSERT INTO run (log_sum, store, kills, lasting) VALUES ($1, $2, $3, $4) ON CONFLICT ON CONSTRAINT run_pkey DO NOTHING;

-- name: read_run
SELECT log_sum, store, kills, lasting, begun, clock_timestamp() FROM run;

-- name: record_effect
INSERT INTO effect (case_id, line, activity, at, worker) VALUES ($1, $2, $3, $4, $5);

-- name: record_firing
INSERT INTO firing (case_id, fired, worker) VALUES ($1, $2, $3);

-- name: record_kill
INSERT INTO kill (worker, backend, xid, queue, outcome) VALUES ($1, $2, $3::text::xid8, $4, $5);

-- name: progress
SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM firing), (SELECT count(*) FROM kill), waiting();

-- name: count_kills
SELECT count(*) FROM kill WHERE outcome = 'aborted';

-- name: open_batch
-- A batch that is open: a session of the worker with a transaction that waits for its client, has an id, and holds a
-- lock on a queue. It has the id because it locked rows there: reading a queue without finding anything assigns none.
-- state_change tells whether the session has moved between two looks.
SELECT a.pid, ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32 << 32) | a.backend_xid::text::bigint)::text,
       q.endpoint, a.state_change::text
FROM pg_stat_activity a
JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'relation' AND l.mode = 'RowShareLock' AND l.granted
JOIN :schema.queue q ON l.relation = to_regclass(format('%I.queue_%s', :'schema', q.id))
WHERE a.application_name = $1 AND a.datname = current_database()
  AND a.state = 'idle in transaction' AND a.xact_start IS NOT NULL AND a.backend_xid IS NOT NULL
ORDER BY a.pid, q.id LIMIT 1;

-- name: outcome
-- Null when Postgres has forgotten the transaction, which takes millions of them.
SELECT coalesce(pg_xact_status($1::text::xid8), 'forgotten');
