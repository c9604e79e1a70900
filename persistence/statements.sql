-- name: load_by_key
-- l is the locked row, for callers that lock; p is the row without a lock. For a locking caller p only shows that the
-- instance exists, because SKIP LOCKED returns no row for a busy and for an absent instance. Its state must not be
-- used then: the transaction that has locked it may commit a newer one. A LATERAL with a locking clause cannot be
-- flattened, so each ref is one index probe, whatever the planner's statistics are.
SELECT u.n,
       l.tid, l.iid, l.saga, l.key, l.version, l.state_version, l.state, l.timeouts, l.originator, l.history,
       p.tid, p.iid, p.saga, p.key, p.version, p.state_version, p.state, p.timeouts, p.originator, p.history
FROM unnest($1::int[], $2::text[], $3::text[], $4::int[]) u(n, saga, key, lock)
LEFT JOIN LATERAL (
    SELECT s.ctid AS tid, s.iid, s.saga, s.key, s.version, s.state_version, s.state, s.timeouts, s.originator,
           s.history
    FROM :schema.saga s
    WHERE u.lock = 1 AND s.saga = u.saga AND s.key = u.key
    FOR NO KEY UPDATE SKIP LOCKED) l ON true
LEFT JOIN LATERAL (
    SELECT s.ctid AS tid, s.iid, s.saga, s.key, s.version, s.state_version,
           CASE WHEN u.lock = 0 THEN s.state END AS state, s.timeouts, s.originator, s.history
    FROM :schema.saga s
    WHERE l.iid IS NULL AND s.saga = u.saga AND s.key = u.key
    OFFSET 0) p ON true;

-- name: load_by_id
-- The same by the instance's id, for replies and timeouts.
SELECT u.n,
       l.tid, l.iid, l.saga, l.key, l.version, l.state_version, l.state, l.timeouts, l.originator, l.history,
       p.tid, p.iid, p.saga, p.key, p.version, p.state_version, p.state, p.timeouts, p.originator, p.history
FROM unnest($1::int[], $2::uuid[], $3::int[]) u(n, iid, lock)
LEFT JOIN LATERAL (
    SELECT s.ctid AS tid, s.iid, s.saga, s.key, s.version, s.state_version, s.state, s.timeouts, s.originator,
           s.history
    FROM :schema.saga s
    WHERE u.lock = 1 AND s.iid = u.iid
    FOR NO KEY UPDATE SKIP LOCKED) l ON true
LEFT JOIN LATERAL (
    SELECT s.ctid AS tid, s.iid, s.saga, s.key, s.version, s.state_version,
           CASE WHEN u.lock = 0 THEN s.state END AS state, s.timeouts, s.originator, s.history
    FROM :schema.saga s
    WHERE l.iid IS NULL AND s.iid = u.iid
    OFFSET 0) p ON true;

-- name: wait
-- Waits, up to lock_timeout, for the transaction that has locked the instance. Only a transaction that has locked no
-- other instance may run it.
SELECT s.iid FROM :schema.saga s WHERE s.iid = $1 FOR NO KEY UPDATE;

-- name: start
-- The only statement of a batch that may wait (for an uncommitted start of the same key), so it comes first, with its
-- rows in key order. The caller sorts them.
INSERT INTO :schema.saga (iid, saga, key, version, state_version, state, timeouts, originator, history)
SELECT n.iid, n.saga, n.key, 1, n.state_version, n.state, n.timeouts, n.originator, n.history
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::json[], $6::json[], $7::json[], $8::uuid[])
     n(iid, saga, key, state_version, state, timeouts, originator, history)
ON CONFLICT (saga, key) DO NOTHING
RETURNING iid;

-- name: save
-- For instances that were read without a lock and have changed. Each row is locked and compared before anything is
-- written. A row that a concurrent transaction has locked, or that was written since, is not in l: its save has lost.
-- Nothing here waits. Rows are reached by the ctid that was loaded: a row that was written since has a different one.
WITH l AS MATERIALIZED (
    SELECT u.n, u.tid, u.op, u.state_version, u.state, u.timeouts, u.history
    FROM unnest($1::int[], $2::tid[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::json[], $8::json[],
                $9::uuid[])
         u(n, tid, iid, version, op, state_version, state, timeouts, history)
    CROSS JOIN LATERAL (
        SELECT FROM :schema.saga s
        WHERE s.ctid = u.tid AND s.iid = u.iid AND s.version = u.version
        FOR NO KEY UPDATE SKIP LOCKED) x),
changed AS (
    UPDATE :schema.saga s
    SET version = s.version + 1, state_version = l.state_version, state = l.state, timeouts = l.timeouts,
        history = coalesce(l.history, s.history), changed = now()
    FROM l WHERE s.ctid = l.tid AND l.op = 1
    RETURNING 1),
completed AS (
    DELETE FROM :schema.saga s USING l WHERE s.ctid = l.tid AND l.op = 2
    RETURNING 1)
SELECT (SELECT array_agg(l.n) FROM l),
       :schema.expect((SELECT count(*) FROM changed) + (SELECT count(*) FROM completed)
                    = (SELECT count(*) FROM l), 'a saga instance was written twice or not at all');

-- name: check
-- For instances that were read without a lock and have not changed. A row that a concurrent transaction is changing,
-- or that was written since, is not in the result: its messages are retried. The lock is shared: transactions that
-- change nothing do not exclude each other.
SELECT u.n FROM unnest($1::int[], $2::tid[], $3::uuid[], $4::bigint[]) u(n, tid, iid, version)
CROSS JOIN LATERAL (
    SELECT FROM :schema.saga s WHERE s.ctid = u.tid AND (s.iid, s.version) = (u.iid, u.version)
    FOR SHARE SKIP LOCKED) x;

-- name: save_locked
-- For instances that this transaction has locked since it loaded them: no other transaction can have changed them. If
-- one has changed them nevertheless, the statement fails and nothing commits.
WITH u AS MATERIALIZED (
    SELECT u.* FROM unnest($1::tid[], $2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::json[], $7::json[],
                           $8::uuid[])
                    u(tid, iid, version, op, state_version, state, timeouts, history)),
changed AS (
    UPDATE :schema.saga s
    SET version = s.version + 1, state_version = u.state_version, state = u.state, timeouts = u.timeouts,
        history = coalesce(u.history, s.history), changed = now()
    FROM u WHERE s.ctid = u.tid AND s.iid = u.iid AND s.version = u.version AND u.op = 1
    RETURNING 1),
completed AS (
    DELETE FROM :schema.saga s USING u
    WHERE s.ctid = u.tid AND s.iid = u.iid AND s.version = u.version AND u.op = 2
    RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM changed) + (SELECT count(*) FROM completed) = (SELECT count(*) FROM u),
                      'a locked saga instance has moved');

-- name: end_started
-- For instances that this transaction has started and completed: the unique constraint has checked them. This
-- transaction wrote the rows, so no row is skipped; the lock forces one index probe per row.
DELETE FROM :schema.saga s
USING unnest($1::uuid[]) u(iid)
CROSS JOIN LATERAL (SELECT x.ctid AS tid FROM :schema.saga x WHERE x.iid = u.iid FOR UPDATE SKIP LOCKED) l
WHERE s.ctid = l.tid;

-- name: read
SELECT s.ctid, s.iid, s.saga, s.key, s.version, s.state_version, s.state, s.timeouts, s.originator
FROM :schema.saga s WHERE s.saga = $1 AND s.key = $2;

-- name: list
-- Two conditions on the columns of one index: the beginning of the saga and prefix, and the end of the last page.
SELECT s.iid::text, s.saga, s.key, s.version, s.state_version, NULL::json, s.timeouts, s.originator, s.started,
       s.changed
FROM :schema.saga s
WHERE (s.saga, s.key) >= ($1, $2) AND (s.saga, s.key) > ($3, $4)
ORDER BY s.saga, s.key
LIMIT $5;

-- name: clock
SELECT now();

-- name: oldest
-- An iid contains the start time of its instance, so this is a walk along the primary key.
SELECT s.iid::text, s.saga, s.key, s.version, s.state_version, NULL::json, s.timeouts, s.originator, s.started,
       s.changed
FROM :schema.saga s ORDER BY s.iid LIMIT $1;

-- name: quiet
-- Of the $2 oldest instances the first $1 that have not completed: the only timeout of a remembered instance is of
-- the kind edda.forget.
SELECT s.iid::text, s.saga, s.key, s.version, s.state_version, NULL::json, s.timeouts, s.originator, s.started,
       s.changed
FROM (SELECT o.* FROM :schema.saga o ORDER BY o.iid LIMIT $2) s
WHERE s.timeouts->0->>'kind' IS DISTINCT FROM 'edda.forget' ORDER BY s.iid LIMIT $1;

-- name: show
SELECT s.iid::text, s.saga, s.key, s.version, s.state_version, s.state, s.timeouts, s.originator, s.started, s.changed
FROM :schema.saga s WHERE s.saga = $1 AND s.key = $2;

-- name: changed
-- Instances that differ from the versions of the reader. Each is one index probe, and an unchanged instance returns
-- no row. OFFSET 0 keeps the probes from becoming a join that reads the table.
SELECT u.n, s.iid::text, s.version, s.state_version, s.state, s.timeouts, s.originator
FROM unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::bigint[]) WITH ORDINALITY u(saga, key, iid, version, n)
LEFT JOIN LATERAL (
    SELECT s.iid, s.version, s.state_version, s.state, s.timeouts, s.originator
    FROM :schema.saga s
    WHERE s.saga = u.saga AND s.key = u.key
    OFFSET 0) s ON true
WHERE coalesce(s.iid, '00000000-0000-0000-0000-000000000000') <> u.iid OR coalesce(s.version, 0) <> u.version;

-- name: name_of
SELECT s.saga, s.key FROM :schema.saga s WHERE s.iid = $1;

-- name: last_page
SELECT s.iid, s.history FROM :schema.saga s WHERE s.saga = $1 AND s.key = $2;
