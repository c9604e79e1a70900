-- Settings that operators change while endpoints run. Each statement finds its row by the primary key.

-- name: get
-- Read by each process of the endpoint at each poll.
SELECT k.paused_at, k.reason, coalesce(k.concurrency, 0), coalesce(k.history, ''), coalesce(k.history_sample, 0)
FROM :schema.endpoint_setting k WHERE k.endpoint = $1;

-- name: add
-- Inserted when an endpoint runs for the first time, so that a batch which pauses it has a row to change.
INSERT INTO :schema.endpoint_setting (endpoint) VALUES ($1) ON CONFLICT (endpoint) DO NOTHING;

-- name: pause_in_batch
-- Inside a batch, which must not wait: if the row is locked by a change, that change decides. The first reason stays.
UPDATE :schema.endpoint_setting k
SET paused_at = coalesce(k.paused_at, clock_timestamp()), reason = CASE WHEN k.paused_at IS NULL THEN $2
    ELSE k.reason END, paused_by = CASE WHEN k.paused_at IS NULL THEN 'policy' ELSE k.paused_by END
WHERE k.endpoint = (SELECT x.endpoint FROM :schema.endpoint_setting x WHERE x.endpoint = $1
                    FOR NO KEY UPDATE SKIP LOCKED);

-- name: list
-- LIMIT keeps a planner without statistics from expecting thousands of endpoints.
SELECT q.endpoint, k.paused_at, coalesce(k.reason, ''), coalesce(k.paused_by, ''), coalesce(k.concurrency, 0),
       EXISTS (SELECT FROM :schema.settings s WHERE s.name = 'relay/' || q.endpoint),
       coalesce(k.history, ''), coalesce(k.history_sample, 0)
FROM :schema.queue q LEFT JOIN :schema.endpoint_setting k ON k.endpoint = q.endpoint
ORDER BY q.endpoint LIMIT 10000;

-- name: state
-- The settings for the audit, in a row that no other transaction changes before this one has ended.
SELECT json_strip_nulls(json_build_object('paused_at', k.paused_at, 'reason', nullif(k.reason, ''),
    'paused_by', nullif(k.paused_by, ''), 'concurrency', k.concurrency, 'history', k.history,
    'history_sample', k.history_sample))
FROM :schema.endpoint_setting k WHERE k.endpoint = $1 FOR NO KEY UPDATE;

-- name: pause
-- A second pause keeps the time, and takes the newer reason.
INSERT INTO :schema.endpoint_setting AS k (endpoint, paused_at, reason, paused_by)
SELECT q.endpoint, clock_timestamp(), $2, coalesce(nullif($3, ''), session_user)
FROM :schema.queue q WHERE q.endpoint = $1
ON CONFLICT (endpoint) DO UPDATE SET paused_at = coalesce(k.paused_at, excluded.paused_at), reason = excluded.reason,
    paused_by = excluded.paused_by
RETURNING (SELECT q.id FROM :schema.queue q WHERE q.endpoint = k.endpoint);

-- name: resume
INSERT INTO :schema.endpoint_setting AS k (endpoint) SELECT q.endpoint FROM :schema.queue q WHERE q.endpoint = $1
ON CONFLICT (endpoint) DO UPDATE SET paused_at = NULL, reason = '', paused_by = ''
RETURNING (SELECT q.id FROM :schema.queue q WHERE q.endpoint = k.endpoint);

-- name: set_concurrency
INSERT INTO :schema.endpoint_setting AS k (endpoint, concurrency)
SELECT q.endpoint, $2 FROM :schema.queue q WHERE q.endpoint = $1
ON CONFLICT (endpoint) DO UPDATE SET concurrency = excluded.concurrency
RETURNING (SELECT q.id FROM :schema.queue q WHERE q.endpoint = k.endpoint);

-- name: set_history
INSERT INTO :schema.endpoint_setting AS k (endpoint, history, history_sample)
SELECT q.endpoint, nullif($2, ''), nullif($3::float8, 0) FROM :schema.queue q WHERE q.endpoint = $1
ON CONFLICT (endpoint) DO UPDATE SET history = excluded.history, history_sample = excluded.history_sample
RETURNING (SELECT q.id FROM :schema.queue q WHERE q.endpoint = k.endpoint);
