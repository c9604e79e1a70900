-- name: open
-- Every statement of a batch reaches its rows by an index probe or a ctid. A plan made while the tables were
-- empty, or before the first ANALYZE, must not choose otherwise. What they forbid counts as very expensive, which
-- would make Postgres compile a statement that reads one row: hence no JIT. And hence no plan made anew for each
-- take, which Postgres would prefer to one that does not know the LIMIT.
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: open_leased
-- As open, for a leased endpoint. Its transactions hold what other processes need: messages, lanes, the lock of claims.
-- So none waits for a lock, or stands still, for longer than $1, or than what is set and stricter.
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('lock_timeout', CASE WHEN l.set::interval BETWEEN interval '1 microsecond' AND $1::text::interval
           THEN l.set ELSE $1::text END, true),
       set_config('idle_in_transaction_session_timeout', CASE WHEN i.set::interval BETWEEN interval '1 microsecond'
           AND $1::text::interval THEN i.set ELSE $1::text END, true)
FROM current_setting('lock_timeout') l(set), current_setting('idle_in_transaction_session_timeout') i(set);

-- name: plain_planner
-- A user's handler runs under the planner settings of its session.
SELECT set_config('enable_seqscan', $1, true), set_config('enable_hashjoin', $2, true),
       set_config('enable_mergejoin', $3, true), set_config('enable_bitmapscan', $4, true), set_config('jit', $5, true),
       set_config('plan_cache_mode', $6, true);

-- name: lent_settings
-- What a session has of these settings; a server that is too old for one of them leaves it out.
SELECT array_agg(n.name ORDER BY n.place), array_agg(current_setting(n.name, true) ORDER BY n.place)
FROM unnest($1::text[]) WITH ORDINALITY n(name, place) WHERE current_setting(n.name, true) IS NOT NULL;

-- name: take_back
-- For the transaction ($3), or for the session and so for both, where a handler may have set that: a pooler gives the
-- session to others. The lock_timeout that the batch itself has set ($4) is no handler's. Whose rights the session has
-- comes first.
SELECT set_config(s.name, s.value, $3) FROM unnest($1::text[], $2::text[]) s(name, value)
WHERE current_setting(s.name) IS DISTINCT FROM s.value AND NOT (s.name = 'lock_timeout'
    AND current_setting(s.name) = $4);

-- name: planner
SELECT current_setting('enable_seqscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_bitmapscan'), current_setting('jit'),
       current_setting('plan_cache_mode'), pg_backend_pid();

-- name: bound_idle
-- A process that stands still between two statements, or is cut off, keeps what it has locked from all others for as
-- long as its connection lives, which may be hours. So the server ends its transaction, after $1 or what is stricter.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
WHERE current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 microsecond'
    AND $1::interval;

-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);

-- name: take
-- The row lock is the claim. A header or a body of more than $4 bytes stays behind, for read_large: so the server reads
-- from TOAST, and sends, no more than the process has memory for. xmax is not 0 when somebody has had the row locked
-- before: he let go of it, or is dead.
SELECT q.ctid, q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END, CASE WHEN octet_length(q.body) <= $4::int
           THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), q.xmax
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1
FOR UPDATE SKIP LOCKED;

-- name: take_seated
-- A take behind a seat in the same pipeline: without one it takes nothing. Messages that a batch without a seat had
-- locked would be passed over by those who have one.
SELECT q.ctid, q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END, CASE WHEN octet_length(q.body) <= $4::int
           THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), q.xmax
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1 * current_setting('edda.seat')::int
FOR UPDATE SKIP LOCKED;

-- name: read_large
-- Headers and bodies that a take, or a look of a relay, has left behind.
SELECT l.place - 1, q.header, q.body
FROM unnest($1::timestamptz[], $2::uuid[]) WITH ORDINALITY l(due, id, place) JOIN :queue q ON q.due = l.due
    AND q.id = l.id;

-- name: next_due
SELECT q.due - now() FROM :queue q WHERE q.due > now() ORDER BY q.due, q.id LIMIT 1;

-- name: xact
SELECT pg_current_xact_id_if_assigned()::text;

-- name: insert
-- A due that is null is now, by the clock of this very moment and not of the transaction's begin.
INSERT INTO :queue (due, id, kind, header, body)
SELECT coalesce(o.due, clock_timestamp()), o.id, o.kind, o.header, o.body
FROM unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[]) o(due, id, kind, header, body);

-- name: insert_again
-- A message that goes back: everything about it is kept, and a retry is due counted from now.
INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body)
SELECT clock_timestamp() + o.delay * interval '1 microsecond', o.id, o.sent, o.first_failed, o.attempt, o.conflict,
    o.kind, o.header, o.body
FROM unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::text[],
    $8::bytea[], $9::bytea[])
     o(delay, id, sent, first_failed, attempt, conflict, kind, header, body);

-- name: insert_one
INSERT INTO :queue (due, id, kind, header, body) VALUES (coalesce($1,
    clock_timestamp() + $6::bigint * interval '1 microsecond'), $2, $3, $4, $5);

-- name: insert_in_order
-- What is sent together keeps its order: each message is due a microsecond after the one before it.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS reading)
INSERT INTO :queue (due, id, kind, header, body)
SELECT clock.reading + o.place * interval '1 microsecond', o.id::uuid, o.kind, o.header, o.body
FROM clock CROSS JOIN unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) WITH ORDINALITY o(id, kind, header,
    body, place);

-- name: delete
-- Exactly the messages this batch answers for, in the transaction that holds their effects. If one of them is not there
-- to be deleted, or this is another transaction than the one that took them, nothing commits. The second is a handler's
-- fault and not a matter of old routes, so its error is of another kind: a text that is no number.
WITH d AS (DELETE FROM :queue q WHERE q.ctid = ANY ($1::tid[]) RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM d) = $2, 'a taken message was gone'),
       CASE WHEN $3 <> '' AND $3 <> pg_current_xact_id()::text
            THEN ('a handler ended the transaction that took its message, and this is ' || pg_current_xact_id())::int END;

-- name: move
-- Messages that this transaction has taken, to the queue of their partition. Nothing about them changes. All or
-- nothing, as in delete.
WITH gone AS (
    DELETE FROM :queue q WHERE q.ctid = ANY ($1::tid[])
    RETURNING q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body),
there AS (
    INSERT INTO :target (due, id, sent, first_failed, attempt, conflict, kind, header, body)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body FROM gone g
    RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM there) = $2, 'a taken message was gone');

-- name: gather
-- Messages of a partition back to the queue that they came through, whenever they are due.
WITH gone AS (
    DELETE FROM :queue q WHERE q.ctid = ANY (ARRAY(SELECT x.ctid FROM :queue x ORDER BY x.due,
        x.id LIMIT $1 FOR UPDATE))
    RETURNING q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body),
there AS (
    INSERT INTO :target (due, id, sent, first_failed, attempt, conflict, kind, header, body)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body FROM gone g
    RETURNING 1)
SELECT count(*) FROM there;

-- name: partitions
SELECT value FROM :schema.settings WHERE name = $1;

-- name: set_partitions
INSERT INTO :schema.settings (name, value) VALUES ($1, $2) ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: forget_partitions
DELETE FROM :schema.settings WHERE name = $1;

-- name: delete_timeouts
-- A courtesy for timeouts that were cancelled: one that is firing at this moment is left alone, and will be
-- discarded because its instance no longer lists it.
DELETE FROM :queue q WHERE q.ctid = ANY (ARRAY(
    SELECT x.tid FROM unnest($1::timestamptz[], $2::uuid[]) u(due, id)
    CROSS JOIN LATERAL (
        SELECT m.ctid AS tid FROM :queue m WHERE m.due = u.due AND m.id = u.id FOR UPDATE SKIP LOCKED) x));

-- name: lock_generation
-- Held until the end of the transaction: a subscriber that is being added waits for us. Never waits itself.
SELECT :schema.expect(pg_try_advisory_xact_lock_shared(1162101825, tableoid::int), 'a subscription is being added')
FROM :schema.subscription_generation;

-- name: wait_generation
-- The same in a caller's transaction, which may wait. Where that has one snapshot for all its statements, an older
-- one than the newest subscription, Postgres refuses it here with 40001.
SELECT :schema.event_queues($1::text);

-- name: check_generation
-- A statement of its own, after the lock: its snapshot must be younger than the lock.
SELECT :schema.expect(generation = $1, 'the subscriptions have changed') FROM :schema.subscription_generation;

-- name: marks
-- Tells a transaction of another database from one of ours, and whether the known routes are the newest.
SELECT g.generation, s.value FROM :schema.subscription_generation g, :schema.settings s WHERE s.name = 'schema_id';

-- name: routes
-- LIMIT tells the planner that there is one row. It takes a table without statistics for thousands, and
-- compiled this statement for half a second in the first transaction of every process.
-- A queue whose table somebody dropped by hand is no queue: whoever publishes to it must not fail for ever.
SELECT g.generation, (SELECT value FROM :schema.settings WHERE name = 'schema_id'), q.id, q.endpoint,
       EXISTS (SELECT FROM :schema.settings r WHERE r.name = 'relay/' || q.endpoint), s.kind
FROM (SELECT generation FROM :schema.subscription_generation LIMIT 1) g
LEFT JOIN :schema.queue q ON to_regclass(format('%I.queue_%s', :'schema', q.id)) IS NOT NULL
LEFT JOIN :schema.subscription s ON s.queue = q.id
ORDER BY q.id, s.kind;

-- name: find_queue
SELECT id FROM :schema.queue WHERE endpoint = $1;

-- name: create_queue
SELECT :schema.create_queue($1);

-- name: missing_subscriptions
SELECT count(*) FROM unnest($2::text[]) k(kind)
WHERE NOT EXISTS (SELECT FROM :schema.subscription s WHERE s.queue = $1 AND s.kind = k.kind);

-- name: lock_subscriptions
SELECT pg_advisory_xact_lock(1162101825, tableoid::int) FROM :schema.subscription_generation;

-- name: subscribe
WITH added AS (
    INSERT INTO :schema.subscription (kind, queue) SELECT k.kind, $1 FROM unnest($2::text[]) k(kind)
    ON CONFLICT ON CONSTRAINT subscription_pkey DO NOTHING RETURNING 1)
UPDATE :schema.subscription_generation SET generation = generation + 1 WHERE EXISTS (SELECT FROM added);

-- name: unsubscribe
WITH gone AS (DELETE FROM :schema.subscription WHERE queue = $1 AND kind = ANY ($2::text[]) RETURNING 1)
UPDATE :schema.subscription_generation SET generation = generation + 1 WHERE EXISTS (SELECT FROM gone);

-- name: notify
-- Nobody depends on a notification, so its commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), :schema.nudge($1, $2);

-- name: send
-- Without an id of the caller's the function makes one, and remembers nothing. In another database than the bus's there
-- is no row here, so nothing is called: the function depends on this schema's own row.
SELECT s.message_id::text, s.copies, s.duplicate
FROM :schema.settings here CROSS JOIN LATERAL :schema.send(
    kind => CASE WHEN here.name = 'schema_id' THEN $1::text END, body => $2::bytea, header => $3::json,
        endpoint => $4::text, publish => $5::boolean, id => $6::uuid,
    due => coalesce($7::timestamptz, CASE WHEN $8::bigint > 0
        THEN clock_timestamp() + $8::bigint * interval '1 microsecond' END)) s
WHERE here.name = 'schema_id' AND here.value = $9;

-- name: check_client
-- A client that has vanished must not keep its batch locked until TCP gives up.
SELECT set_config('client_connection_check_interval', '2000', false);

-- name: claim
-- A claim moves due to the end of the lease, so that the row leaves the head of the queue and comes back by itself.
-- Each row gets a microsecond of its own: one message may be in a queue twice. Rows are claimed as long as they have no
-- more than $4 bytes together, and the first one always is; the column before the last is how many were due, up to $1.
-- Where the process of a row's last owner has died, the row counts a death, which the last column tells: 2 when the
-- message was alone in hand.
WITH found AS MATERIALIZED (
    SELECT x.ctid AS tid, x.due AS was, x.owner AS before, x.alone AS lonely,
        octet_length(x.kind) + octet_length(x.header) + octet_length(x.body) AS size
    FROM :queue x
    WHERE x.due <= now() ORDER BY x.due, x.id LIMIT $1 FOR UPDATE SKIP LOCKED),
numbered AS MATERIALIZED (
    SELECT f.*, row_number() OVER upto AS place, sum(f.size) OVER upto AS bytes,
           CASE WHEN f.before <> $3::uuid THEN :schema.session_died(f.before, $5) END AS died
    FROM found f WINDOW upto AS (ROWS UNBOUNDED PRECEDING))
UPDATE :queue q
SET due = now() + ($2::bigint + n.place) * interval '1 microsecond', claim = coalesce(q.claim, 0) + 1,
    owner = $3::uuid, turn = coalesce(q.turn, n.was),
    deaths = CASE WHEN n.died THEN coalesce(q.deaths, 0) + 1 ELSE q.deaths END,
    deaths_alone = CASE WHEN n.died AND q.alone THEN coalesce(q.deaths_alone, 0) + 1 ELSE q.deaths_alone END,
        alone = NULL
FROM numbered n WHERE q.ctid = n.tid AND (n.bytes <= $4::bigint OR n.place = 1)
RETURNING q.turn, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, now(), q.due, q.claim,
    q.cancelled, n.before, coalesce(q.deaths, 0), coalesce(q.deaths_alone, 0),
          (SELECT count(*) FROM found), CASE WHEN n.died THEN 1 + (n.lonely IS TRUE)::int ELSE 0 END;

-- name: extend
-- Rows that somebody has locked are left for the next time: whoever finishes or cancels one is not waited for. They are
-- found again by key and not by ctid: a cancel that commits after this statement's snapshot has moved the row.
WITH found AS MATERIALIZED (
    SELECT u.place, x.due, x.id FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim,
        place)
    CROSS JOIN LATERAL (
        SELECT m.due, m.id FROM :queue m
        WHERE m.due = u.due AND m.id = u.id AND m.claim = u.claim AND m.owner = $5::uuid FOR UPDATE SKIP LOCKED) x)
UPDATE :queue q SET due = $6::timestamptz + f.place * interval '1 microsecond'
FROM found f WHERE q.due = f.due AND q.id = f.id
RETURNING f.place, q.cancelled, now();

-- name: held
SELECT u.place FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
CROSS JOIN LATERAL (
    SELECT FROM :queue m WHERE m.due = u.due AND m.id = u.id AND m.claim = u.claim AND m.owner = $5::uuid) x;

-- name: finish
-- Exactly the messages whose claim still stands: another claim has moved the row or taken its number. A cancel that
-- commits while this waits for the row moves it, too, and takes nothing: hence no ctid, which would be looked for where
-- the row was.
DELETE FROM :queue q USING unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
WHERE q.due = u.due AND q.id = u.id AND q.claim = u.claim AND q.owner = $5::uuid
RETURNING u.place, now(), q.cancelled;

-- name: release
-- What was not begun goes back to where it was. See finish.
UPDATE :queue q SET due = q.turn, turn = NULL, claim = NULL, owner = NULL
FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
WHERE q.due = u.due AND q.id = u.id AND q.claim = u.claim AND q.owner = $5::uuid
RETURNING u.place, now(), q.cancelled;

-- name: cancel_waiting
-- Read from one end to the other: a queue has no index of ids. A message that a batch has in hand is waited for.
DELETE FROM :queue q WHERE q.ctid = (
    SELECT x.ctid FROM :queue x WHERE x.id = $1 AND NOT (x.owner IS NOT NULL
        AND x.due > clock_timestamp()) LIMIT 1 FOR UPDATE)
RETURNING q.kind, q.header;

-- name: cancel_parked
DELETE FROM :schema.parked p WHERE p.queue = $1 AND p.id = $2 RETURNING p.kind, p.header;

-- name: cancel_claimed
UPDATE :queue q SET cancelled = $2 WHERE q.id = $1 AND q.owner IS NOT NULL;

-- name: is_there
SELECT EXISTS (SELECT FROM :queue q WHERE q.id = $1) OR EXISTS (SELECT FROM :schema.parked p WHERE p.queue = $2
    AND p.id = $1);

-- name: lock_claims
-- Claims of an ordered endpoint go one after another in the whole cluster: whoever comes first sees the head first.
SELECT pg_advisory_xact_lock(1162110000 + $1::int, tableoid::int) FROM :schema.subscription_generation;

-- name: await_lanes
-- Waits for whoever ends a message in one of these lanes, and keeps everybody else from doing so. The caller sorts the
-- keys by their bytes. A statement of its own: what is read after it includes what was committed before the locks were
-- had.
SELECT FROM unnest($2::text[]) u(key) CROSS JOIN LATERAL (SELECT FROM :schema.lane l WHERE l.queue = $1
    AND l.key = u.key FOR UPDATE) x;

-- name: live_lanes
-- The lanes that are ours. Nobody enters one while we have the lock of claims, so they stay so until this transaction
-- ends.
SELECT u.key FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (
    SELECT FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key AND l.owner = $3::uuid
        AND l.until > clock_timestamp()) x;

-- name: enter_lanes
-- A lane is entered when nobody has it, or by the message that it waits for, which may also be gone. One whose owner's
-- lease is over is not entered: the owner has claimed messages that come before ours, and they are due behind the whole
-- queue. See revive.go. The row is locked even where the answer is no: whoever leaves the lane waits for us, and then
-- sees what we parked. The caller sorts the keys by their bytes, as everybody does who locks more than one.
INSERT INTO :schema.lane (queue, key, owner, session, until, waits_id)
SELECT $1, u.key, $4::uuid, $6::uuid, now() + $5::bigint * interval '1 microsecond', u.id FROM unnest($2::text[],
    $3::uuid[]) u(key, id)
ON CONFLICT ON CONSTRAINT lane_pkey DO UPDATE SET owner = excluded.owner, session = excluded.session,
    until = excluded.until, waits_due = NULL, waits_id = NULL
WHERE lane.owner IS NULL AND (lane.waits_id = excluded.waits_id OR NOT :schema.is_queued(lane.queue, lane.waits_due,
    lane.waits_id))
RETURNING key;

-- name: park
-- All $7 of them, or those that are found where it is negative. A cancel that commits while this waits for a row moves
-- the row, and changes nothing else: hence no ctid, which would be looked for where the row was.
WITH gone AS (
    DELETE FROM :queue q USING unnest($2::timestamptz[], $3::uuid[], $4::int[], $5::text[], $8::int[],
        $9::int[]) u(due, id, claim, key, deaths, deaths_alone)
    WHERE q.due = u.due AND q.id = u.id AND q.claim = u.claim AND q.owner = $6::uuid
    RETURNING u.key, q.turn, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, q.cancelled,
              nullif(u.deaths, 0) AS deaths, nullif(u.deaths_alone, 0) AS deaths_alone),
there AS (
    INSERT INTO :schema.parked (queue, key, due, id, sent, first_failed, attempt, conflict, kind, header, body,
        cancelled, deaths, deaths_alone)
    SELECT $1, g.key, g.turn, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body,
        g.cancelled, g.deaths, g.deaths_alone FROM gone g
    RETURNING 1)
SELECT :schema.expect($7::bigint < 0 OR (SELECT count(*) FROM there) = $7, 'a claimed message has moved');

-- name: lock_lanes
-- In the order of the keys, as everybody does who locks more than one.
SELECT x.key FROM unnest($2::text[]) WITH ORDINALITY u(key, n)
CROSS JOIN LATERAL (SELECT l.key FROM :schema.lane l WHERE l.queue = $1 AND l.key = u.key
    AND l.owner = $3::uuid FOR UPDATE) x
ORDER BY u.n;

-- name: parked_in
-- In which of these lanes messages are parked, and the turn of the first one.
SELECT u.key, x.due FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (SELECT p.due FROM :schema.parked p WHERE p.queue = $1 AND p.key = u.key ORDER BY p.due,
    p.id LIMIT 1) x;

-- name: next_parked
-- What waits for the lanes comes back to the queue as claimed by their owner: of each lane as many as have no more than
-- $6 bytes together, and the first one in any case.
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
        p.cancelled, p.deaths, p.deaths_alone),
back AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, claim, owner, turn,
        cancelled, deaths, deaths_alone)
    SELECT clock_timestamp() + ($5::bigint + g.place) * interval '1 microsecond', g.id, g.sent, g.first_failed,
        g.attempt, g.conflict, g.kind, g.header,
           g.body, 1, $4::uuid, g.due, g.cancelled, g.deaths, g.deaths_alone FROM gone g
    RETURNING due, id, turn)
SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header,
       g.body, now(), b.due, 1, g.cancelled, NULL::uuid, coalesce(g.deaths, 0), coalesce(g.deaths_alone, 0), 0::bigint,
           0, g.key
FROM gone g JOIN back b ON b.id = g.id AND b.turn = g.due
ORDER BY g.place;

-- name: keep_lanes
-- A lane must not end long before what was just claimed in it.
UPDATE :schema.lane l SET until = greatest(l.until, now() + $4::bigint * interval '1 microsecond')
WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.owner = $3::uuid;

-- name: leave_lanes
DELETE FROM :schema.lane l WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.owner = $3::uuid;

-- name: revive_lanes
-- The first message that is parked in each of these lanes goes back to its turn in the queue, and its lane waits for
-- it: so it is the next of its key that anybody can claim. A lane without such a message is gone. The caller has locked
-- the lanes.
WITH first AS MATERIALIZED (
    SELECT u.key, x.tid FROM unnest($2::text[]) u(key)
    CROSS JOIN LATERAL (SELECT p.ctid AS tid FROM :schema.parked p WHERE p.queue = $1 AND p.key = u.key ORDER BY p.due,
        p.id LIMIT 1) x),
gone AS (
    DELETE FROM :schema.parked p USING first f WHERE p.ctid = f.tid
    RETURNING f.key, p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.cancelled,
        p.deaths, p.deaths_alone),
back AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, cancelled, deaths,
        deaths_alone)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.cancelled, g.deaths,
        g.deaths_alone FROM gone g),
left_over AS (DELETE FROM :schema.lane l WHERE l.queue = $1 AND l.key = ANY ($2::text[]) AND l.key NOT IN (SELECT f.key
    FROM first f))
UPDATE :schema.lane l SET owner = NULL, session = NULL, waits_due = g.due, waits_id = g.id FROM gone g
    WHERE l.queue = $1 AND l.key = g.key;

-- name: wait_in_lanes
-- A message that failed goes back with its turn, and its lane waits for it.
WITH again AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, turn)
    SELECT clock_timestamp() + o.delay * interval '1 microsecond', o.id, o.sent, o.first_failed, o.attempt, o.conflict,
        o.kind, o.header, o.body, o.turn
    FROM unnest($2::bigint[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::int[], $7::int[], $8::text[],
        $9::bytea[], $10::bytea[], $11::timestamptz[])
         o(delay, id, sent, first_failed, attempt, conflict, kind, header, body, turn)
    RETURNING due, id)
UPDATE :schema.lane l SET owner = NULL, session = NULL, waits_due = a.due, waits_id = a.id
FROM unnest($3::uuid[], $12::text[]) u(id, key) JOIN again a ON a.id = u.id
WHERE l.queue = $1 AND l.key = u.key;

-- name: extend_lanes
-- Waits for nobody, as extend: a process that asks for a lane of ours has it locked until its claim ends, and it may
-- stand still in there. A statement that was given up, and arrives after a later one, must not end the lane sooner than
-- the later one has promised.
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
-- For an endpoint without order. What is parked in a lane that somebody has is that owner's to take over; it is a
-- program from before a deploy. The lanes stay: an ordered program finds out which of them are stale.
WITH lost AS MATERIALIZED (
    SELECT p.ctid AS tid FROM :schema.parked p
    WHERE p.queue = $1 AND NOT EXISTS (
        SELECT FROM :schema.lane l WHERE l.queue = $1 AND l.key = p.key AND l.owner IS NOT NULL
            AND l.until > clock_timestamp())
    ORDER BY p.key, p.due, p.id LIMIT $2),
gone AS (
    DELETE FROM :schema.parked p USING lost x WHERE p.ctid = x.tid
    RETURNING p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.cancelled,
        p.deaths, p.deaths_alone),
there AS (
    INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, cancelled, deaths,
        deaths_alone)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.cancelled, g.deaths,
        g.deaths_alone FROM gone g RETURNING 1)
SELECT count(*) FROM there;

-- name: stale_lanes
-- Of a window of lanes, from a key on, those to revive, and the last one.
SELECT l.key, l.dead, l.n FROM (
    SELECT w.key, w.n, w.owner IS NOT NULL AND w.until <= clock_timestamp()
               OR w.owner IS NULL AND NOT EXISTS (SELECT FROM :queue q WHERE q.due = w.waits_due
                   AND q.id = w.waits_id) AS dead
    FROM (SELECT x.*, row_number() OVER (ORDER BY x.key) AS n FROM :schema.lane x WHERE x.queue = $1 AND x.key > $2
        ORDER BY x.key LIMIT $3) w) l
WHERE l.dead OR l.n = $3;

-- name: dead_lanes
-- Which of these lanes, that are locked, are still to be revived, and the sessions whose claims are to be looked for.
SELECT x.key, x.session, x.until FROM unnest($2::text[]) u(key)
CROSS JOIN LATERAL (
    SELECT l.key, CASE WHEN l.owner IS NOT NULL THEN l.session END AS session, l.until FROM :schema.lane l
    WHERE l.queue = $1 AND l.key = u.key
      AND (l.owner IS NOT NULL AND l.until <= clock_timestamp()
           OR l.owner IS NULL AND NOT EXISTS (SELECT FROM :queue q WHERE q.due = l.waits_due AND q.id = l.waits_id))) x;

-- name: in_dead_hands
-- What these sessions have claimed. A queue has no index of owners, so it is read from a lease before the first of
-- their lanes has ended to the latest end that a lease of this moment may have. An extension that is late moves the
-- rows and passes over the lane, which the caller has locked. It adds a lease to what its process takes for our clock,
-- which is behind by less than another lease: a process that took longer to read the clock does not trust what it
-- claimed with that.
SELECT q.turn, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, now(), q.due, q.claim,
    q.cancelled, q.owner,
       coalesce(q.deaths, 0) + d.died::int, coalesce(q.deaths_alone, 0) + (d.died AND q.alone IS TRUE)::int, 0::bigint,
       CASE WHEN d.died THEN 1 + (q.alone IS TRUE)::int ELSE 0 END
FROM (SELECT u.session, u.since, u.session <> $4::uuid AND :schema.session_died(u.session, $5) AS died
      FROM unnest($1::uuid[], $2::timestamptz[]) u(session, since) OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT x.* FROM :queue x WHERE x.due >= d.since AND x.due <= now() + 2 * $3::bigint * interval '1 microsecond'
        AND x.owner = d.session) q;

-- name: mark_alone
UPDATE :queue q SET alone = $5 WHERE q.due = $1 AND q.id = $2 AND q.claim = $3 AND q.owner = $4::uuid;
