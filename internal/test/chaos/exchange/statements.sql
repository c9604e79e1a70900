-- name: create
CREATE TABLE :schema.example_cursor (next int NOT NULL);
INSERT INTO :schema.example_cursor VALUES (0);
CREATE TABLE :schema.example_receipt (number int NOT NULL);

-- name: lock_cursor
SELECT next FROM :schema.example_cursor FOR UPDATE;

-- name: move_cursor
UPDATE :schema.example_cursor SET next = $1;

-- name: receive
-- No constraint: a number that is received twice must show.
INSERT INTO :schema.example_receipt VALUES ($1);

-- name: progress
SELECT count(*) FROM :schema.example_receipt;

-- name: counts
SELECT (SELECT next FROM :schema.example_cursor),
       (SELECT coalesce(sum((state ->> 'Count')::int), 0) FROM :schema.saga),
       (SELECT coalesce(sum((state ->> 'Sum')::bigint), 0) FROM :schema.saga),
       (SELECT count(*) FROM :schema.example_receipt),
       (SELECT count(DISTINCT number) FROM :schema.example_receipt),
       (SELECT count(*) FROM :schema.dead_letter) + (SELECT count(*) FROM :schema.discarded),
       (SELECT count(*) FROM :schema.take('tallies', 1000)) + (SELECT count(*) FROM :schema.take('counted', 1000)) +
           (SELECT count(*) FROM :schema.take('receipts', 1000));

-- name: open_transactions
-- A process that has been stopped and is still "idle in transaction" has a batch in its hands.
SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state = 'idle in transaction';
