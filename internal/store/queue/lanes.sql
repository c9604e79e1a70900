-- The lanes of ordered endpoints, and the messages that are parked in them.

-- name: await_lanes
-- Waits for a process that is ending a message in these lanes, and keeps every other process from doing so. The
-- caller sorts the keys by their bytes. A statement of its own: later statements read everything that was committed
-- before the locks were granted.
SELECT FROM unnest($2::text[]) u(key) CROSS JOIN LATERAL (SELECT FROM :schema.lane l WHERE l.queue = $1
    AND l.key = u.key FOR UPDATE) x;

-- name: live_lanes
-- The lanes that are ours. No process enters a lane while we hold the lock of claims, so they stay ours until this
-- transaction ends.
SELECT u.key FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (
    SELECT FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key AND l.owner = $3::uuid
        AND l.until > clock_timestamp()) x;

-- name: enter_lanes
-- A lane can be entered if it has no owner, and then only by the message that it waits for, or by any message if the
-- awaited one is gone. A lane whose owner's lease is over cannot be entered: the owner has claimed messages that come
-- before ours, and they are due behind the whole queue. See internal/engine/leased. The row is locked even if the
-- lane cannot be entered: a process that leaves the lane waits for us, and then finds the messages we parked. The
-- caller sorts the keys by their bytes, like every transaction that locks more than one.
INSERT INTO :schema.lane (queue, key, owner, session, until, waits_id)
SELECT $1, u.key, $4::uuid, $6::uuid, now() + $5::bigint * interval '1 microsecond', u.id FROM unnest($2::text[],
    $3::uuid[]) u(key, id)
ON CONFLICT ON CONSTRAINT lane_pkey DO UPDATE SET owner = excluded.owner, session = excluded.session,
    until = excluded.until, waits_due = NULL, waits_id = NULL
WHERE lane.owner IS NULL AND (lane.waits_id = excluded.waits_id OR NOT :schema.is_queued(lane.queue, lane.waits_due,
    lane.waits_id))
RETURNING key;

-- name: park
-- All $7 messages, or, if $7 is negative, as many as are found. A cancel that commits while this waits for a row
-- moves the row, and changes nothing else: so the row is not found by ctid.
WITH gone AS (
    DELETE FROM :queue q USING unnest($2::timestamptz[], $3::uuid[], $4::int[], $5::text[], $8::int[],
        $9::int[]) u(due, id, claim, key, deaths, deaths_alone)
    WHERE q.due = ANY (ARRAY[u.due]) AND q.id = u.id AND q.claim = u.claim AND q.owner = $6::uuid
    RETURNING u.key, q.was_due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body,
        q.cancelled,
              nullif(u.deaths, 0) AS deaths, nullif(u.deaths_alone, 0) AS deaths_alone, q.last_error),
there AS (
    INSERT INTO :schema.parked (queue, key, due, id, sent, first_failed, attempt, conflict, kind, header, body,
        cancelled, deaths, deaths_alone, last_error)
    SELECT $1, g.key, g.was_due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body,
        g.cancelled, g.deaths, g.deaths_alone, g.last_error FROM gone g
    RETURNING 1)
SELECT :schema.expect($7::bigint < 0 OR (SELECT count(*) FROM there) = $7, 'a claimed message has moved');

-- name: lock_lanes
-- In the order of the keys, like every transaction that locks more than one.
SELECT x.key FROM unnest($2::text[]) WITH ORDINALITY u(key, n)
CROSS JOIN LATERAL (SELECT l.key FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key
    AND l.owner = $3::uuid FOR UPDATE) x
ORDER BY u.n;

-- name: parked_in
-- The lanes with parked messages, and the due time of the first message of each.
SELECT u.key, x.due FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (SELECT p.due FROM :schema.parked p WHERE p.queue = $1 AND p.key = u.key ORDER BY p.due,
    p.id LIMIT 1) x;

-- name: next_parked
-- Messages that wait in the lanes return to the queue as claimed by their owner: for each lane as many as have no
-- more than $6 bytes together, and the first one in any case.
WITH next AS MATERIALIZED (
    SELECT x.tid, u.key, row_number() OVER () AS place FROM unnest($2::text[]) u(key)
    CROSS JOIN LATERAL (
        SELECT s.tid FROM (
            SELECT r.tid, r.size, sum(r.size) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (
                SELECT p.ctid AS tid, octet_length(p.kind) + octet_length(p.header) + octet_length(p.body) AS size
                FROM :schema.parked p WHERE p.queue = $1 AND p.key = u.key ORDER BY p.due, p.id LIMIT $3) r) s
        WHERE s.upto <= $6::bigint OR s.upto = s.size) x),
gone AS (
    DELETE FROM :schema.parked p USING next n WHERE p.ctid = n.tid
    RETURNING n.place, n.key, p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body,
        p.cancelled, p.deaths, p.deaths_alone, p.last_error),
back AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, claim, owner, was_due,
        cancelled, deaths, deaths_alone, last_error)
    SELECT clock_timestamp() + ($5::bigint + g.place) * interval '1 microsecond', g.id, g.sent, g.first_failed,
        g.attempt, g.conflict, g.kind, g.header,
           g.body, 1, $4::uuid, g.due, g.cancelled, g.deaths, g.deaths_alone, g.last_error FROM gone g
    RETURNING due, id, was_due)
SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body,
       octet_length(g.kind) + octet_length(g.header) + octet_length(g.body), now(),
       b.due, 1, g.cancelled, NULL::uuid, coalesce(g.deaths, 0), coalesce(g.deaths_alone, 0), 0::bigint, 0, g.key
FROM gone g JOIN back b ON b.id = g.id AND b.was_due = g.due
ORDER BY g.place;

-- name: keep_lanes
-- A lane must not end long before the messages just claimed in it.
UPDATE :schema.lane l SET until = greatest(l.until, now() + $4::bigint * interval '1 microsecond')
WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.owner = $3::uuid;

-- name: leave_lanes
DELETE FROM :schema.lane l WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.owner = $3::uuid;

-- name: revive_lanes
-- The first parked message of each of these lanes goes back to its place in the queue, and its lane waits for it: so
-- it is the next of its key that any process can claim. A lane without such a message is deleted. The caller has
-- locked the lanes.
WITH first AS MATERIALIZED (
    SELECT u.key, x.tid FROM unnest($2::text[]) u(key)
    CROSS JOIN LATERAL (SELECT p.ctid AS tid FROM :schema.parked p WHERE p.queue = $1 AND p.key = u.key ORDER BY p.due,
        p.id LIMIT 1) x),
gone AS (
    DELETE FROM :schema.parked p USING first f WHERE p.ctid = f.tid
    RETURNING f.key, p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.cancelled,
        p.deaths, p.deaths_alone, p.last_error),
back AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, cancelled, deaths,
        deaths_alone, last_error)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.cancelled, g.deaths,
        g.deaths_alone, g.last_error FROM gone g),
left_over AS (DELETE FROM :schema.lane l WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.key NOT IN (SELECT f.key
    FROM first f))
UPDATE :schema.lane l SET owner = NULL, session = NULL, waits_due = g.due, waits_id = g.id FROM gone g
    WHERE l.queue = $1 AND l.key = g.key;

-- name: wait_in_lanes
-- A message that failed goes back with a new due time, and its lane waits for it.
WITH again AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, last_error,
        was_due)
    SELECT clock_timestamp() + o.delay * interval '1 microsecond', o.id, o.sent, o.first_failed, o.attempt, o.conflict,
        o.kind, o.header, o.body, nullif(o.last_error, ''), o.was_due
    FROM unnest($2::bigint[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::int[], $7::int[], $8::text[],
        $9::bytea[], $10::bytea[], $11::text[], $12::timestamptz[])
         o(delay, id, sent, first_failed, attempt, conflict, kind, header, body, last_error, was_due)
    RETURNING due, id)
UPDATE :schema.lane l SET owner = NULL, session = NULL, waits_due = a.due, waits_id = a.id
FROM unnest($3::uuid[], $13::text[]) u(id, key) JOIN again a ON a.id = u.id
WHERE l.queue = $1 AND l.key = u.key;

-- name: extend_lanes
-- Does not wait for locks, like extend: a process that tries to enter a lane of ours has it locked until its claim
-- ends, and may stall in between. A statement that was given up, and arrives after a later one, must not shorten the
-- lane's time.
WITH ours AS MATERIALIZED (
    SELECT x.key FROM unnest($2::text[]) u(key)
    CROSS JOIN LATERAL (SELECT l.key FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key
        AND l.owner = $3::uuid FOR UPDATE SKIP LOCKED) x)
UPDATE :schema.lane l SET until = greatest(l.until, $4) FROM ours o WHERE l.queue = $1 AND l.key = o.key
    RETURNING l.key;

-- name: lanes_of
SELECT u.key FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (SELECT FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key AND l.owner = $3::uuid) x;

-- name: unpark
-- For an endpoint without order. Messages parked in a lane that has an owner are left to that owner, a program from
-- before a deploy. The lanes stay: an ordered program finds out which of them are stale.
WITH lost AS MATERIALIZED (
    SELECT p.ctid AS tid FROM :schema.parked p
    WHERE p.queue = $1 AND NOT EXISTS (
        SELECT FROM :schema.lane l WHERE l.queue = $1 AND l.key = p.key AND l.owner IS NOT NULL
            AND l.until > clock_timestamp())
    ORDER BY p.key, p.due, p.id LIMIT $2),
gone AS (
    DELETE FROM :schema.parked p USING lost x WHERE p.ctid = x.tid
    RETURNING p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.cancelled,
        p.deaths, p.deaths_alone, p.last_error),
there AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, cancelled, deaths,
        deaths_alone, last_error)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.cancelled, g.deaths,
        g.deaths_alone, g.last_error FROM gone g RETURNING 1)
SELECT count(*) FROM there;

-- name: stale_lanes
-- Of a window of lanes, from a key on, the lanes to revive, and the last one.
SELECT l.key, l.dead, l.n FROM (
    SELECT w.key, w.n, w.owner IS NOT NULL AND w.until <= clock_timestamp()
               OR w.owner IS NULL AND NOT EXISTS (SELECT FROM :queue q WHERE q.due = w.waits_due
                   AND q.id = w.waits_id) AS dead
    FROM (SELECT x.*, row_number() OVER (ORDER BY x.key) AS n FROM :schema.lane x WHERE x.queue = $1 AND x.key > $2
        ORDER BY x.key LIMIT $3) w) l
WHERE l.dead OR l.n = $3;

-- name: dead_lanes
-- Which of these locked lanes are still to be revived, and the sessions whose claims are to be read.
SELECT x.key, x.session, x.until FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (
    SELECT l.key, CASE WHEN l.owner IS NOT NULL THEN l.session END AS session, l.until FROM :schema.lane l
    WHERE l.queue = $1 AND l.key = u.key
      AND (l.owner IS NOT NULL AND l.until <= clock_timestamp()
           OR l.owner IS NULL AND NOT EXISTS (SELECT FROM :queue q WHERE q.due = l.waits_due AND q.id = l.waits_id))) x;
