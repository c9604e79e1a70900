-- Sessions of processes, and the ledger of what careful ones have in hand.

-- name: lazily
-- Must survive the death of a process, and need not survive that of the server.
SELECT set_config('synchronous_commit', 'off', true);

-- name: renew_session
-- One that was taken for dead, and is not, is there again.
INSERT INTO :schema.session (id, host, pid, queues, locked, expires)
VALUES ($1, $2, $3, $4::int[], $5, clock_timestamp() + $6::bigint * interval '1 microsecond')
ON CONFLICT ON CONSTRAINT session_pkey DO UPDATE SET queues = excluded.queues, locked = excluded.locked,
    renewed = clock_timestamp(), expires = excluded.expires, ended = NULL, died = false;

-- name: end_session
UPDATE :schema.session SET ended = clock_timestamp(), died = false, locked = false WHERE id = $1;

-- name: lock_session
-- Held by a connection as long as the process lives. Who tries it holds it for a moment only.
SELECT pg_advisory_lock(hashtextextended(s.id::text, s.tableoid::bigint)) FROM :schema.session s WHERE s.id = $1;

-- name: bury_sessions
-- A session died when its time is over, or when it said that it holds its lock, and the lock is free. One of those who
-- look marks it; nobody waits.
WITH gone AS (
    SELECT s.id FROM :schema.session s
    WHERE s.ended IS NULL AND s.id <> $1
      AND CASE WHEN s.expires < clock_timestamp() THEN true
               WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.tableoid::bigint))
               ELSE false END
    LIMIT 100 FOR UPDATE SKIP LOCKED)
UPDATE :schema.session d SET ended = clock_timestamp(), died = true, locked = false
FROM gone WHERE d.id = gone.id RETURNING d.id, d.host, d.pid, d.queues;

-- name: peers
SELECT EXISTS (SELECT FROM :schema.session s WHERE s.ended IS NULL AND s.id <> $1);

-- name: careful_queues
-- Which of the queues were in the hands of a process that died in the last while, and for how many microseconds that counts.
SELECT u.queue, s.remaining FROM unnest($1::int[]) u(queue)
CROSS JOIN LATERAL (
    SELECT $2::bigint + (extract(epoch FROM s.ended - clock_timestamp()) * 1000000)::bigint AS remaining
    FROM :schema.session s
    WHERE s.ended > clock_timestamp() - $2::bigint * interval '1 microsecond' AND s.ended IS NOT NULL AND s.died AND u.queue = ANY (s.queues)
    ORDER BY s.ended DESC LIMIT 1) s;

-- name: dead_sessions
-- Which of these died. One that is not there any more has been dead for long: a living one is always there. With
-- presume, one that holds no lock is believed to have died before its time is over.
SELECT u.id FROM unnest($1::uuid[]) u(id)
LEFT JOIN LATERAL (SELECT s.*, s.tableoid AS place FROM :schema.session s WHERE s.id = u.id OFFSET 0) s ON true
WHERE CASE WHEN s.id IS NULL OR s.died THEN true
           WHEN s.ended IS NOT NULL OR NOT $2 THEN false
           WHEN s.expires < clock_timestamp() THEN true
           WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.place::bigint))
           ELSE $3 END;

-- name: prune_sessions
DELETE FROM :schema.session d WHERE d.id = ANY (ARRAY(
    SELECT s.id FROM :schema.session s WHERE s.ended IS NOT NULL AND s.ended < clock_timestamp() - $1::bigint * interval '1 microsecond'
    ORDER BY s.ended LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: enter_ledger
-- Before a careful batch runs anything. What is returned was there already, although we have its message in hand: somebody
-- had it before us, and could not strike it out.
WITH entered AS (
    INSERT INTO :schema.crash_ledger (queue, due, id, deaths, alone, session)
    SELECT $1, u.due, u.id, 0, 0, $4 FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
    ON CONFLICT ON CONSTRAINT crash_ledger_pkey DO NOTHING)
SELECT l.due, l.id, l.deaths, l.alone, l.session, l.solo
FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
CROSS JOIN LATERAL (SELECT * FROM :schema.crash_ledger l WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id OFFSET 0) l;

-- name: charge_deaths
-- Once for each death, whoever finds it: a row that was charged names no session.
UPDATE :schema.crash_ledger l
SET deaths = l.deaths + 1, alone = l.alone + l.solo::int, session = NULL, solo = false, at = clock_timestamp()
FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id AND l.session = ANY ($4::uuid[]);

-- name: take_over
UPDATE :schema.crash_ledger l SET session = $4, solo = $5, at = clock_timestamp()
FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id;

-- name: strike_out
-- In the transaction of the batch: its messages met their fate, or are left with nothing known against them.
DELETE FROM :schema.crash_ledger d WHERE d.ctid = ANY (ARRAY(
    SELECT x.tid FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
    CROSS JOIN LATERAL (
        SELECT l.ctid AS tid FROM :schema.crash_ledger l WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id FOR UPDATE SKIP LOCKED) x));

-- name: withdraw
-- Before the rollback of a process that lives: no death. What has deaths already keeps them.
DELETE FROM :schema.crash_ledger d WHERE d.ctid = ANY (ARRAY(
    SELECT x.tid FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
    CROSS JOIN LATERAL (
        SELECT l.ctid AS tid FROM :schema.crash_ledger l
        WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id AND l.session = $4 AND l.deaths = 0 FOR UPDATE SKIP LOCKED) x));

-- name: put_down
UPDATE :schema.crash_ledger d SET session = NULL, solo = false, at = clock_timestamp() WHERE d.ctid = ANY (ARRAY(
    SELECT x.tid FROM unnest($2::timestamptz[], $3::uuid[]) u(due, id)
    CROSS JOIN LATERAL (
        SELECT l.ctid AS tid FROM :schema.crash_ledger l
        WHERE l.queue = $1 AND l.due = u.due AND l.id = u.id AND l.session = $4 AND l.deaths > 0 FOR UPDATE SKIP LOCKED) x));

-- name: prune_ledger
-- Rows of messages that are gone: somebody deleted them, or what should have struck them out was lost.
DELETE FROM :schema.crash_ledger d WHERE d.ctid = ANY (ARRAY(
    SELECT l.ctid FROM :schema.crash_ledger l
    WHERE l.queue = $1 AND l.at < clock_timestamp() - interval '1 minute'
      AND NOT EXISTS (SELECT FROM :queue q WHERE q.due = l.due AND q.id = l.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED));
