-- Sessions of processes, and the journal of the messages that processes in quarantine have in hand.

-- name: lazily
-- Must survive the death of a process, but not that of the server.
SELECT set_config('synchronous_commit', 'off', true);

-- name: renew_session
-- A session that was taken for dead by mistake is alive again.
INSERT INTO :schema.session (id, host, pid, queues, locked, expires, left_calls)
VALUES ($1, $2, $3, $4::int[], $5, clock_timestamp() + $6::bigint * interval '1 microsecond', $7::int[])
ON CONFLICT ON CONSTRAINT session_pkey DO UPDATE SET queues = excluded.queues, locked = excluded.locked,
    left_calls = excluded.left_calls,
    renewed = clock_timestamp(), expires = excluded.expires, ended = NULL, died = false;

-- name: end_session
UPDATE :schema.session SET ended = clock_timestamp(), died = false, locked = false WHERE id = $1;

-- name: lock_session
-- A connection holds the lock as long as the process lives. Other processes try it in shared mode, for a moment only.
-- If the lock is taken, the second column is the server process that holds it exclusively, or 0 if that has ended by
-- now.
SELECT pg_try_advisory_lock(k.key), coalesce((
    SELECT l.pid FROM pg_locks l
    WHERE l.locktype = 'advisory'
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND l.objsubid = 1 AND l.classid::bigint << 32 | l.objid::bigint = k.key
        AND l.granted AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid() LIMIT 1), 0)
FROM (SELECT hashtextextended(s.id::text, s.tableoid::bigint) AS key FROM :schema.session s WHERE s.id = $1 OFFSET 0) k;

-- name: end_earlier
SELECT pg_terminate_backend($1::int);

-- name: bury_sessions
-- A session has died if its time is over, or if its row says that it holds its lock and the lock is free. A process
-- that checks marks it; the others do not wait. Unless $2 is true, each process tries the locks of only the $3
-- sessions after its own, in a circle: if all tried all, n processes would try n * n locks. For the ARRAY see
-- internal/engine/dispatch/statements.sql.
WITH near AS MATERIALIZED (
    (SELECT s.id FROM :schema.session s WHERE s.ended IS NULL AND s.id > $1 ORDER BY s.id LIMIT $3)
    UNION ALL
    (SELECT s.id FROM :schema.session s WHERE s.ended IS NULL AND s.id < $1 ORDER BY s.id LIMIT $3)
    LIMIT $3),
gone AS (
    SELECT s.id FROM :schema.session s
    WHERE s.ended IS NULL AND s.id <> $1
      AND CASE WHEN s.expires < clock_timestamp() THEN true
               WHEN NOT $2 AND s.id NOT IN (SELECT n.id FROM near n) THEN false
               WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.tableoid::bigint))
               ELSE false END
    LIMIT 100 FOR UPDATE SKIP LOCKED)
UPDATE :schema.session d SET ended = clock_timestamp(), died = true, locked = false
FROM gone WHERE d.id = ANY (ARRAY[gone.id]) RETURNING d.id, d.host, d.pid, d.queues;

-- name: peers
SELECT EXISTS (SELECT FROM :schema.session s WHERE s.ended IS NULL AND s.id <> $1);

-- name: quarantined_queues
-- Which of the queues a process ran that has died lately, and for how many more microseconds their quarantine lasts.
-- Compares with now(), because an index can be used for it: the transaction has just begun.
SELECT u.queue, s.remaining FROM unnest($1::int[]) u(queue)
CROSS JOIN LATERAL (
    SELECT $2::bigint + (extract(epoch FROM s.ended - clock_timestamp()) * 1000000)::bigint AS remaining
    FROM :schema.session s
    WHERE s.ended > now() - $2::bigint * interval '1 microsecond' AND s.ended IS NOT NULL AND s.died
        AND u.queue = ANY (s.queues)
    ORDER BY s.ended DESC LIMIT 1) s;

-- name: look_anew
-- Within a transaction Postgres repeats its first answer about server processes, unless this is called.
SELECT pg_stat_clear_snapshot();

-- name: dead_sessions
-- Which of these sessions have died. A session without a row died long ago: a living one always has a row. A session
-- that holds no lock counts as dead before its time is over if its server process, $2, has ended.
SELECT u.id FROM unnest($1::uuid[], $2::int[]) u(id, backend)
LEFT JOIN LATERAL (SELECT s.*, s.tableoid AS place FROM :schema.session s WHERE s.id = u.id OFFSET 0) s ON true
WHERE CASE WHEN s.id IS NULL OR s.died THEN true
           WHEN s.ended IS NOT NULL OR NOT $3 THEN false
           WHEN s.expires < clock_timestamp() THEN true
           WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.place::bigint))
           WHEN u.backend = 0 THEN false
           ELSE NOT EXISTS (SELECT FROM pg_stat_get_activity(u.backend)) END;

-- name: prune_sessions
DELETE FROM :schema.session d WHERE d.id = ANY (ARRAY(
    SELECT s.id FROM :schema.session s WHERE s.ended IS NOT NULL
        AND s.ended < now() - $1::bigint * interval '1 microsecond'
    ORDER BY s.ended LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: enter_batch
-- Before a batch in quarantine calls a handler.
INSERT INTO :schema.in_flight (id, queue, session, alone, due, ids) VALUES ($1, $2, $3, $4, $5::timestamptz[],
    $6::uuid[]);

-- name: leave_batch
-- In the batch's own transaction, or after its rollback: a living process is not blamed in between.
DELETE FROM :schema.in_flight WHERE id = $1;

-- name: leave_batches
-- Entries that could not be deleted earlier because Postgres was not available.
DELETE FROM :schema.in_flight WHERE id = ANY ($1::uuid[]);

-- name: old_batches
-- Batches of other processes that had messages which we have in hand now. Their rows would be gone if they had ended
-- well.
SELECT h.id, h.session, h.backend FROM :schema.in_flight h WHERE h.queue = $1 AND h.session <> $2
    AND h.ids && $3::uuid[];

-- name: charge_batches
-- Each death is counted once, by the process that deletes the row.
WITH died AS (
    DELETE FROM :schema.in_flight h WHERE h.id = ANY ($1::uuid[]) RETURNING h.*),
fallen AS (
    SELECT d.queue, u.due, u.id, count(*)::int AS deaths, sum(d.alone::int)::int AS alone
    FROM died d CROSS JOIN LATERAL unnest(d.due, d.ids) u(due, id) GROUP BY d.queue, u.due, u.id)
INSERT INTO :schema.suspect AS l (queue, due, id, deaths, alone) SELECT f.queue, f.due, f.id, f.deaths, f.alone
    FROM fallen f
ON CONFLICT ON CONSTRAINT suspect_pkey DO UPDATE
SET deaths = l.deaths + excluded.deaths, alone = l.alone + excluded.alone, at = clock_timestamp();

-- name: suspects
SELECT l.due, l.id, l.deaths, l.alone FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
CROSS JOIN LATERAL (SELECT * FROM :schema.suspect l WHERE l.queue = $1 AND l.due = u.due
    AND l.id = u.id OFFSET 0) l;

-- name: strike_out
-- In the transaction that decides the fate of a suspect.
DELETE FROM :schema.suspect l WHERE l.queue = $1 AND l.due = $2 AND l.id = $3;

-- name: prune_batches
-- No batch lasts this long: its process could not delete the row, and no process has taken its messages since.
DELETE FROM :schema.in_flight d WHERE d.ctid = ANY (ARRAY(
    SELECT h.ctid FROM :schema.in_flight h
    WHERE h.at < clock_timestamp() - $1::bigint * interval '1 microsecond' LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: journal_queues
SELECT DISTINCT l.queue FROM :schema.suspect l WHERE l.at < clock_timestamp() - interval '1 minute'
    ORDER BY l.queue;

-- name: prune_journal
-- Rows of messages that are gone: they were deleted, or decided while no process was in quarantine. The statement
-- reads the tables of all these queues, and keeps a lock on each until its end, so the caller limits their number.
DELETE FROM :schema.suspect d WHERE d.ctid = ANY (ARRAY(
    SELECT l.ctid FROM :schema.suspect l
    WHERE l.queue = ANY ($1::int[]) AND l.at < clock_timestamp() - interval '1 minute'
      AND NOT :schema.is_queued(l.queue, l.due, l.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: processes
-- The processes that run any of these queues, and the processes of these sessions. The table has a row for each
-- process.
SELECT s.id, s.host, s.pid, s.queues, s.ended IS NULL AND s.expires > clock_timestamp()
FROM :schema.session s
WHERE s.ended IS NULL AND s.expires > clock_timestamp() AND s.queues && $1::int[] OR s.id = ANY ($2::uuid[])
LIMIT 10000;

-- name: sessions
-- Living processes, and processes that ended within an hour, the newest first.
SELECT s.id, s.host, s.pid, s.queues, s.ended IS NULL AND s.expires > clock_timestamp(), s.started, s.renewed, s.ended,
    s.died, s.left_calls
FROM :schema.session s
WHERE s.ended IS NULL OR s.ended > now() - interval '1 hour'
ORDER BY s.ended IS NOT NULL, s.started DESC, s.id LIMIT 1000;
