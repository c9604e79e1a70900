-- name: open
-- Every statement of a batch reaches its rows by an index probe or a ctid. A plan made while the tables were
-- empty, or before the first ANALYZE, must not choose otherwise. What they forbid counts as very expensive, which
-- would make Postgres compile a statement that reads one row: hence no JIT. And hence no plan made anew for each
-- take, which Postgres would prefer to one that does not know the LIMIT.
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: plain_planner
-- A user's handler runs under the planner settings of its session.
SELECT set_config('enable_seqscan', $1, true), set_config('enable_hashjoin', $2, true),
       set_config('enable_mergejoin', $3, true), set_config('enable_bitmapscan', $4, true), set_config('jit', $5, true),
       set_config('plan_cache_mode', $6, true);

-- name: planner
SELECT current_setting('enable_seqscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_bitmapscan'), current_setting('jit'),
       current_setting('plan_cache_mode');

-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);

-- name: take
-- The row lock is the claim. A large body is left behind and read when its turn comes. xmax is not 0 when somebody has
-- had the row locked before: he let go of it, or is dead.
SELECT q.ctid, q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header,
       CASE WHEN octet_length(q.body) <= 65536 THEN q.body END, octet_length(q.body), now(), q.xmax
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1
FOR UPDATE SKIP LOCKED;

-- name: body
SELECT q.body FROM :queue q WHERE q.ctid = $1;

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
SELECT clock_timestamp() + o.delay * interval '1 microsecond', o.id, o.sent, o.first_failed, o.attempt, o.conflict, o.kind, o.header, o.body
FROM unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::text[], $8::bytea[], $9::bytea[])
     o(delay, id, sent, first_failed, attempt, conflict, kind, header, body);

-- name: insert_one
INSERT INTO :queue (due, id, kind, header, body) VALUES (coalesce($1, clock_timestamp() + $6::bigint * interval '1 microsecond'), $2, $3, $4, $5);

-- name: insert_in_order
-- What is sent together keeps its order: each message is due a microsecond after the one before it.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS reading)
INSERT INTO :queue (due, id, kind, header, body)
SELECT clock.reading + o.place * interval '1 microsecond', o.id::uuid, o.kind, o.header, o.body
FROM clock CROSS JOIN unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) WITH ORDINALITY o(id, kind, header, body, place);

-- name: delete
-- Exactly the messages this batch answers for, in the transaction that holds their effects. If one of them
-- is not there to be deleted, or this is another transaction than the one that took them, nothing commits. The
-- second is a handler's fault and not a matter of old routes, so its error is of another kind: a text that is no number.
WITH d AS (DELETE FROM :queue q WHERE q.ctid = ANY ($1::tid[]) RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM d) = $2, 'a taken message was gone'),
       CASE WHEN $3 <> '' AND $3 <> pg_current_xact_id()::text
            THEN ('a handler ended the transaction that took its message, and this is ' || pg_current_xact_id())::int END;

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
SELECT g.generation, (SELECT value FROM :schema.settings WHERE name = 'schema_id'), q.id, q.endpoint, s.kind
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
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2);

-- name: send
-- Without an id of the caller's the function makes one, and remembers nothing. In another database than the bus's there is
-- no row here, so nothing is called: the function depends on this schema's own row.
SELECT s.message_id::text, s.copies, s.duplicate
FROM :schema.settings here CROSS JOIN LATERAL :schema.send(
    kind => CASE WHEN here.name = 'schema_id' THEN $1::text END, body => $2::bytea, header => $3::json, endpoint => $4::text, publish => $5::boolean, id => $6::uuid,
    due => coalesce($7::timestamptz, CASE WHEN $8::bigint > 0 THEN clock_timestamp() + $8::bigint * interval '1 microsecond' END)) s
WHERE here.name = 'schema_id' AND here.value = $9;

-- name: check_client
-- A client that has vanished must not keep its batch locked until TCP gives up.
SELECT set_config('client_connection_check_interval', '2000', false);
