-- The queues, and the subscriptions with their generation.

-- name: routes
-- LIMIT makes the planner expect one row. For a table without statistics it expects thousands, and compiled this
-- statement for half a second in the first transaction of every process. A queue whose table was dropped by hand is
-- left out: a publish must not fail forever because of it.
SELECT g.generation, (SELECT value FROM :schema.settings WHERE name = 'schema_id'), q.id, q.endpoint,
       EXISTS (SELECT FROM :schema.settings r WHERE r.name = 'relay/' || q.endpoint), s.kind
FROM (SELECT generation FROM :schema.subscription_generation LIMIT 1) g
LEFT JOIN :schema.queue q ON to_regclass(format('%I.queue_%s', :'schema', q.id)) IS NOT NULL
LEFT JOIN :schema.subscription s ON s.queue = q.id
ORDER BY q.id, s.kind;

-- name: marks
-- Shows whether a transaction is of our database, and whether the cached routes are the newest.
SELECT g.generation, s.value FROM :schema.subscription_generation g, :schema.settings s WHERE s.name = 'schema_id';

-- name: lock_generation
-- Held until the end of the transaction: a subscriber that is being added waits for us. Never waits itself.
SELECT :schema.expect(pg_try_advisory_xact_lock_shared(1162101825, tableoid::int), 'a subscription is being added')
FROM :schema.subscription_generation;

-- name: wait_generation
-- The same in a caller's transaction, which may wait. If that transaction has one snapshot for all its statements,
-- which is older than the newest subscription, Postgres refuses it here with 40001.
SELECT :schema.event_queues($1::text);

-- name: check_generation
-- A statement of its own, after the lock: its snapshot must be newer than the lock.
SELECT :schema.expect(generation = $1, 'the subscriptions have changed') FROM :schema.subscription_generation;

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

-- name: partition_number
SELECT value FROM :schema.settings WHERE name = 'partitions/' || $1;

-- name: relay_mark
-- An endpoint that has run has a setting. Its queue cannot become a relay's, since its program would come back.
INSERT INTO :schema.settings (name, value)
SELECT 'relay/' || q.endpoint, 'yes' FROM :schema.queue q
WHERE q.endpoint = $1 AND NOT EXISTS (SELECT FROM :schema.endpoint_setting k WHERE k.endpoint = q.endpoint)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: relay_marked
SELECT EXISTS (SELECT FROM :schema.settings WHERE name = 'relay/' || $1);
