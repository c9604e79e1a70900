-- name: ledger_create
-- No table has a constraint: what happens twice must show as two rows.
CREATE SCHEMA chaos;
-- Every message that must have an effect, and every effect.
CREATE TABLE chaos.told (key text NOT NULL, n bigint NOT NULL);
CREATE TABLE chaos.effect (key text NOT NULL, n bigint NOT NULL, slot int, epoch bigint, sent timestamptz,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
-- Every run of a handler: whether its process held the slot or the lane when it began, and what it returned.
CREATE TABLE chaos.run (no bigint GENERATED ALWAYS AS IDENTITY, worker text NOT NULL, key text NOT NULL,
    n bigint NOT NULL,
    slot int, epoch bigint, holds boolean NOT NULL, began timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended timestamptz, ok boolean);
CREATE INDEX ON chaos.run (no);
-- What was done to workers, and when the slots and lanes of a frozen worker end.
CREATE TABLE chaos.blow (worker text NOT NULL, kind text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.expiry (worker text NOT NULL, key text, slot int, epoch bigint,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), expires timestamptz NOT NULL);
-- Whether the breaking is over. Handlers then take no time.
CREATE TABLE chaos.calm (yes boolean NOT NULL, at timestamptz);
INSERT INTO chaos.calm VALUES (false);

-- Stable, so that all queues are counted in the snapshot of the calling statement. Messages move from queue to queue in
-- one transaction, and zero then means that nothing is left anywhere.
CREATE FUNCTION chaos.backlog() RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    q int;
    n bigint;
    total bigint := (SELECT count(*) FROM :schema.parked);
BEGIN
    FOR q IN SELECT id FROM :schema.queue LOOP
        EXECUTE format('SELECT count(*) FROM %I.queue_%s', :'schema', q) INTO n;
        total := total + n;
    END LOOP;
    RETURN total;
END $$;

-- name: backlog
SELECT chaos.backlog();

-- name: blow
INSERT INTO chaos.blow (worker, kind) VALUES ($1, $2);

-- name: calm
UPDATE chaos.calm SET yes = true, at = clock_timestamp();

-- name: check_effects
SELECT CASE WHEN NOT coalesce(t.told, false) THEN 'invented' WHEN e.times IS NULL THEN 'lost' ELSE 'doubled' END,
       key || '/' || n,
       format('message %s/%s, %s, has %s effects', key, n, CASE WHEN t.told THEN 'told' ELSE 'never told' END,
           coalesce(e.times, 0))
FROM (SELECT DISTINCT key, n, true AS told FROM chaos.told) t
FULL JOIN (SELECT key, n, count(*) AS times FROM chaos.effect GROUP BY key, n) e USING (key, n)
WHERE t.told IS NULL OR e.times IS NULL OR e.times > 1 AND key <> ALL ($1::text[])
ORDER BY key, n;

-- name: open_batch
-- A session of the process with a transaction that waits for its client, has an id, and holds a lock on a queue. It has
-- the id because it locked or wrote rows there: to read a queue without finding anything assigns none. state_change
-- shows whether the session has moved between two looks.
SELECT a.pid, ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32 << 32) | a.backend_xid::text::bigint)::text,
       a.state_change::text
FROM pg_stat_activity a
JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'relation' AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
    AND l.granted
JOIN pg_class c ON c.oid = l.relation AND c.relname ~ '^queue_[0-9]+$'
WHERE a.application_name = $1 AND a.datname = current_database()
  AND a.state = 'idle in transaction' AND a.backend_xid IS NOT NULL
ORDER BY a.pid, c.relname LIMIT 1;

-- name: outcome
-- Null when Postgres has forgotten the transaction, which takes millions of them.
SELECT coalesce(pg_xact_status($1::text::xid8), 'forgotten');
