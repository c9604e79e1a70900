-- The tables and the counting of the workload schedule.

-- name: begun
-- The messages that the handlers of schedule-lateness handled. Without a unique constraint: a message that is handled
-- twice has two rows.
CREATE TABLE :schema.bench_begun (run uuid NOT NULL, begun timestamptz NOT NULL, put timestamptz NOT NULL);

-- name: copy
-- $1 manifests like the declared manifest, which becomes the first of them; the others are as if made at run time.
-- They are due tomorrow or later.
INSERT INTO :schema.manifest (name, owner, definition, priority, overlap, retries, retry_delay, retry_most, timeout,
    kind, body, due)
SELECT 'm' || n, '', m.definition, m.priority, m.overlap, m.retries, m.retry_delay, m.retry_most, m.timeout, m.kind,
    m.body,
       now() + interval '1 day' + (hashint8(n) & 2147483647) * interval '1 millisecond'
  FROM :schema.manifest m, generate_series(2, $1::int) n
 WHERE m.name = 'm1'

-- name: all_due
-- All of them, at one moment that has passed.
UPDATE :schema.manifest SET due = now() - interval '1 second'

-- name: spread
-- Spreads the due times evenly over the second that begins in three.
UPDATE :schema.manifest m SET due = c.begin + (substr(m.name, 2)::int - 1) * interval '1 second' / $1::int
  FROM (SELECT clock_timestamp() + interval '3 seconds' AS begin) c
RETURNING c.begin

-- name: some_due
-- $1 times 100 manifests from everywhere in the table, the first hundred in three seconds, the others $3 microseconds
-- after those before.
UPDATE :schema.manifest m SET due = c.begin + s.n / 100 * $3::bigint * interval '1 microsecond'
  FROM (SELECT clock_timestamp() + interval '3 seconds' AS begin) c, generate_series(0, 100 * $1::int - 1) s(n)
 WHERE m.name = 'm' || (1 + s.n * ($2::int / (100 * $1::int)))

-- name: settle
-- Back to where nothing was fired.
WITH gone AS (DELETE FROM :schema.run)
UPDATE :schema.manifest SET run = NULL, fired = NULL, due = now() + interval '1 day' WHERE run IS NOT NULL
    OR due < now() + interval '1 hour'

-- name: empty
TRUNCATE :schema.queue_1

-- name: all_sent
-- Nothing is due, and nothing waits for its dispatch.
SELECT NOT EXISTS (SELECT FROM :schema.manifest m WHERE m.live AND m.run IS NULL AND m.held IS NULL
    AND m.due <= clock_timestamp())
   AND NOT EXISTS (SELECT FROM :schema.run r WHERE r.state IN ('waiting', 'queued'))

-- name: sent
-- The messages in the queue, the distinct manifests with an active run whose current attempt sent such a message, and
-- all runs.
SELECT (SELECT count(*) FROM :schema.queue_1),
       (SELECT count(DISTINCT r.manifest_id) FROM :schema.queue_1 q JOIN :schema.run_attempt a ON a.message_id = q.id
          JOIN :schema.run r ON r.id = a.run AND r.attempt = a.attempt AND r.message_id = q.id AND r.state = 'active'),
       (SELECT count(*) FROM :schema.run)

-- name: handle
-- The row of the attempt is as the dispatcher's transaction wrote it until the handler's own ends.
INSERT INTO :schema.bench_begun (run, begun, put)
SELECT a.run, clock_timestamp(), pg_xact_commit_timestamp(a.xmin) FROM :schema.run_attempt a WHERE a.run = $1
    AND a.attempt = $2

-- name: begun_until
-- How many distinct due times before $1 have been handled.
SELECT count(DISTINCT (r.manifest_id, r.due)) FROM :schema.bench_begun b JOIN :schema.run r ON r.id = b.run
    WHERE r.due < $1

-- name: handled
-- The handlings of due times before $1, and distinct ones among them whose run has succeeded. The due times of a
-- manifest are a second apart.
SELECT count(*), count(DISTINCT (r.manifest_id, r.due)) FILTER (WHERE r.state = 'succeeded')
  FROM :schema.bench_begun b JOIN :schema.run r ON r.id = b.run WHERE r.due < $1

-- name: lateness
-- In microseconds, of due times from $1 until before $2.
SELECT (extract(epoch FROM b.begun - r.due) * 1000000)::bigint, (extract(epoch FROM b.put - r.due) * 1000000)::bigint
  FROM :schema.bench_begun b JOIN :schema.run r ON r.id = b.run WHERE r.due >= $1 AND r.due < $2

-- name: batches
-- Of each hundred, from its due time to the last commit, in microseconds.
SELECT (extract(epoch FROM max(pg_xact_commit_timestamp(a.xmin)) - r.due) * 1000000)::bigint
  FROM :schema.run r JOIN :schema.run_attempt a ON a.run = r.id GROUP BY r.due
