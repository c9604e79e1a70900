-- name: open
-- A transaction of a loop ends by itself if its process hangs. Its statements reach their rows by index, even with a
-- plan that was made when the tables were empty; see the statement of this name in package bus.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: try_lock
-- The lock belongs to the transaction: however the transaction ends, even by SIGKILL, the lock is released.
SELECT pg_try_advisory_xact_lock($1), clock_timestamp();

-- name: load
-- The clock is read once, in front: a condition on a function that changes during the statement cannot use an index.
-- $2 are manifests that this server has set aside.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
SELECT m.id, m.version, m.name, m.due, m.follows, m.definition, (SELECT c.now FROM clock c)
FROM :schema.manifest m
WHERE m.live AND m.run IS NULL AND m.held IS NULL AND m.due <= (SELECT c.now FROM clock c)
    AND m.id <> ALL ($2::bigint[])
ORDER BY m.due, m.id
LIMIT $1;

-- name: reap
-- A transaction that has a run locked is about to end it. A run whose manifest is locked, or a follower of the
-- manifest, which run_end locks too, is ended by a later cycle: so nothing here waits, in whatever order the locks
-- were taken, and a row that is locked for long keeps no other run from its end.
WITH late AS MATERIALIZED (
    SELECT r.id, r.attempt, m.name FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id
    WHERE r.state = 'active' AND r.deadline <= (SELECT clock_timestamp())
    ORDER BY r.deadline, r.id LIMIT $1 FOR NO KEY UPDATE OF r, m SKIP LOCKED
), followers AS MATERIALIZED (
    SELECT f.id FROM (SELECT DISTINCT l.name FROM late l) l JOIN :schema.manifest f ON f.parent = l.name AND f.follows
    FOR NO KEY UPDATE OF f SKIP LOCKED
), free AS (
    SELECT l.id, l.attempt, l.name FROM late l WHERE NOT EXISTS (
        SELECT FROM :schema.manifest f WHERE f.parent = l.name AND f.follows AND f.id NOT IN (SELECT w.id
            FROM followers w)))
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE cardinality(:schema.run_end(array_agg(l.id), array_agg(l.attempt),
    array_agg('timed_out'::text),
    array_agg('the run took longer than its manifest allows'::text))) END,
    coalesce(array_agg(l.name::text), '{}'), coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.attempt), '{}'),
    coalesce(array_agg(false), '{}')
FROM free l;

-- name: queue
-- Decisions about manifests, as far as these have not changed since they were loaded. A locked manifest is left for
-- the next cycle: so nothing here waits, in whatever order the locks were taken. A scheduled run that exists, with
-- the same due time or not dispatched yet, is not inserted again. A follower has no due times of its own that an
-- index could tell apart, so its due must be unchanged. The next due time replaces only the due time before it.
-- Whether a run was inserted is looked up in a hash: a join would compare each of a thousand with a thousand.
WITH said AS MATERIALIZED (
    SELECT s.* FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::uuid[], $5::timestamptz[],
        $6::timestamptz[], $7::timestamptz[], $8::bigint[])
        s(manifest, version, due, run, fire, ready, next, missed)
), held AS MATERIALIZED (
    SELECT s.*, m.follows, coalesce(m.group_id, 0) AS group_id, m.priority FROM said s CROSS JOIN LATERAL (
        SELECT x.* FROM :schema.manifest x WHERE x.id = s.manifest AND x.version = s.version
            AND x.live AND (NOT x.follows OR x.due = s.due AND x.run IS NULL)
        FOR NO KEY UPDATE SKIP LOCKED) m
), made AS (
    INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, priority)
    SELECT h.run, h.manifest, h.group_id, CASE WHEN h.follows THEN 'dependent' ELSE 'schedule' END,
           CASE WHEN h.ready > clock_timestamp() THEN 'waiting' ELSE 'queued' END, h.fire, h.ready, h.priority
    FROM held h WHERE h.fire IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING id, manifest_id
), known AS MATERIALIZED (
    SELECT h.*, CASE WHEN h.run IN (SELECT d.id FROM made d) THEN h.run END AS made FROM held h
), told AS (
    UPDATE :schema.manifest m
    SET due = CASE WHEN m.due = h.due THEN h.next ELSE m.due END,
        run = coalesce(h.made, m.run),
        skipped = m.skipped + h.missed,
        skipped_at = CASE WHEN h.missed > 0 THEN clock_timestamp() ELSE m.skipped_at END,
        fired = CASE WHEN h.made IS NULL THEN m.fired ELSE clock_timestamp() END,
        answered = CASE WHEN h.made IS NULL OR NOT m.follows THEN m.answered
            ELSE coalesce((SELECT p.successes FROM :schema.manifest p WHERE p.name = m.parent), m.answered) END
    FROM known h WHERE m.id = ANY (ARRAY[h.manifest])
)
SELECT (SELECT count(*) FROM held), ARRAY(SELECT d.manifest_id FROM made d),
    ARRAY(SELECT h.manifest FROM held h WHERE h.missed > 0);

-- name: next_due
-- $1 is a time before the load of the cycle. A manifest that became due since then counts: its wait is over.
SELECT (SELECT m.due FROM :schema.manifest m
        WHERE m.live AND m.run IS NULL AND m.held IS NULL AND m.due > $1
        ORDER BY m.due, m.id LIMIT 1) - clock_timestamp();

-- name: notify
SELECT pg_notify($1, $2);

-- name: promote
-- By an array: a join that was planned while there were no runs would read all runs that were added since.
WITH ripe AS MATERIALIZED (
    SELECT r.id FROM :schema.run r
    WHERE r.state = 'waiting' AND r.ready <= (SELECT clock_timestamp())
    ORDER BY r.ready, r.id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE :schema.run r SET state = 'queued' WHERE r.id = ANY (ARRAY(SELECT p.id FROM ripe p));

-- name: next_ready
SELECT (SELECT r.ready FROM :schema.run r WHERE r.state = 'waiting' ORDER BY r.ready, r.id LIMIT 1) - clock_timestamp();

-- name: unsafe
-- The writes of this transaction need not survive a crash.
SELECT set_config('synchronous_commit', 'off', true);

-- name: active
-- Counting ends at the cap.
SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'active' LIMIT $1) a;

-- name: pick
-- The first runs of each group that has any, as many as the group has room for, and in all about twice the number
-- wanted: Go code chooses the order of groups. The groups are found by leaps over the index, however many runs each
-- has. Active runs are counted in an order that only one index has, so that no plan reads the runs of all groups.
-- Runs that a different server has in hand are skipped, so that servers work in parallel; the locks end with this
-- statement, and there is no commit to wait for.
WITH RECURSIVE leap AS (
    (SELECT r.group_id FROM :schema.run r WHERE r.state = 'queued' ORDER BY r.group_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.group_id FROM :schema.run r WHERE r.state = 'queued' AND r.group_id > l.group_id
        ORDER BY r.group_id LIMIT 1)
    FROM leap l WHERE l.group_id IS NOT NULL
), most AS MATERIALIZED (
    SELECT CASE WHEN count(*) = 1 THEN $1::bigint ELSE greatest(1, (2 * $1 + count(*) - 1) / greatest(1,
        count(*))) END AS rows FROM leap l WHERE l.group_id IS NOT NULL
), open AS MATERIALIZED (
    SELECT l.group_id, coalesce(g.priority, 0) AS priority, coalesce(g.strict AND g.most IS NOT NULL, false) AS strict,
        greatest(0, least((SELECT m.rows FROM most m), g.most - (
            SELECT count(*) FROM (
                SELECT FROM :schema.run a WHERE a.state = 'active' AND a.group_id BETWEEN l.group_id AND l.group_id
                ORDER BY a.group_id LIMIT g.most) x))) AS room
    FROM leap l LEFT JOIN :schema.manifest_group g ON g.id = l.group_id
    WHERE l.group_id IS NOT NULL AND g.paused_at IS NULL
)
SELECT q.id, o.group_id, o.strict, q.ready
FROM open o CROSS JOIN LATERAL (
    SELECT r.id, r.priority, r.ready FROM :schema.run r
    WHERE r.state = 'queued' AND r.group_id = o.group_id
    ORDER BY r.priority DESC, r.ready, r.id LIMIT o.room FOR NO KEY UPDATE SKIP LOCKED) q
ORDER BY o.priority DESC, q.priority DESC, q.ready, q.id;

-- name: lock_groups
-- A strict cap is counted while no other server counts it. FOR NO KEY UPDATE allows manifests to be added to the
-- group at the same time.
SELECT g.id FROM :schema.manifest_group g WHERE g.id = ANY ($1::int[]) ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: rooms
-- A statement of its own, because its snapshot must include everything that was committed before the lock was
-- granted.
SELECT g.id, greatest(0, g.most - (
    SELECT count(*) FROM (
        SELECT FROM :schema.run a WHERE a.state = 'active' AND a.group_id BETWEEN g.id AND g.id
            ORDER BY a.group_id LIMIT g.most) x))
FROM :schema.manifest_group g WHERE g.id = ANY ($1::int[]) AND g.strict AND g.most IS NOT NULL;

-- name: claim
-- By their ids: a condition on the state alone would allow a plan that reads all queued runs. A LATERAL with a
-- locking clause, or with OFFSET 0, stays a probe for each row, even in a plan that was made when vacuum had found
-- the tables empty: then the planner expects no rows, and reading a whole index seems as cheap as a probe. "= ANY
-- (ARRAY...)" has the same effect on the table of an UPDATE or a DELETE.
SELECT r.id, m.name, m.definition, r.due, r.attempt, r.refused, coalesce(r.kind, m.kind), coalesce(r.body, m.body)
FROM unnest($1::uuid[], $2::int[]) WITH ORDINALITY s(id, group_id, n)
CROSS JOIN LATERAL (
    SELECT x.* FROM :schema.run x WHERE x.id = s.id AND x.group_id = s.group_id AND x.state || '' = 'queued'
        AND NOT EXISTS (SELECT FROM :schema.manifest_group g WHERE g.id = s.group_id AND g.paused_at IS NOT NULL)
    FOR NO KEY UPDATE SKIP LOCKED) r
CROSS JOIN LATERAL (SELECT m.* FROM :schema.manifest m WHERE m.id = r.manifest_id OFFSET 0) m
ORDER BY s.n;

-- name: sent
WITH went AS (
    UPDATE :schema.run r
    SET state = 'active', attempt = r.attempt + 1, refused = 0, message_id = ($2::uuid[])[array_position($1::uuid[],
        r.id)], beat = NULL,
        deadline = clock_timestamp() + (SELECT m.timeout FROM :schema.manifest m WHERE m.id = r.manifest_id)
    WHERE r.id = ANY ($1::uuid[])
    RETURNING r.id, r.attempt, r.message_id)
INSERT INTO :schema.run_attempt (run, attempt, message_id) SELECT w.id, w.attempt, w.message_id FROM went w;

-- name: let_go
-- With overlap the next firing waits only for the dispatch of the one before it. The condition on attempt, which is
-- in no index, keeps the planner from an index that has the id behind another column.
WITH held AS MATERIALIZED (
    SELECT m.id FROM :schema.manifest m
    WHERE m.id = ANY (ARRAY(SELECT r.manifest_id FROM :schema.run r WHERE r.id = ANY ($1::uuid[]) AND r.attempt > 0))
        AND m.overlap AND m.run = ANY ($1::uuid[])
    ORDER BY m.id FOR NO KEY UPDATE
), freed AS (
    UPDATE :schema.manifest m SET run = NULL WHERE m.id = ANY (ARRAY(SELECT h.id FROM held h)) RETURNING m.due
)
SELECT count(*) FILTER (WHERE f.due <= clock_timestamp()) FROM freed f;

-- name: refuse
-- The message could not be sent, which counts ($8 is 1) or does not. The run stays an entry of the queue, or after
-- too many refusals it is dead.
UPDATE :schema.run r
SET refused = r.refused + $8, error = $4,
    state = CASE WHEN r.refused + $8 >= $5 THEN 'dead' ELSE 'waiting' END,
    ready = clock_timestamp() + least($6::bigint * power(2, least(r.refused, 30)),
        $7::bigint) * interval '1 microsecond'
WHERE r.id = $1 AND r.state = 'queued' AND r.attempt = $2 AND r.refused = $3
RETURNING r.state = 'dead';

-- name: lock_manifest_of
SELECT :schema.manifest_lock(ARRAY(SELECT r.manifest_id FROM :schema.run r WHERE r.id = $1))::text;

-- name: died
SELECT :schema.run_left(ARRAY[$1::uuid])::text;

-- name: lost
WITH silent AS MATERIALIZED (
    SELECT r.id, r.attempt, r.manifest_id FROM :schema.run r
    WHERE r.state = 'active' AND r.beat IS NOT NULL
        AND r.beat <= (SELECT clock_timestamp()) - $2::bigint * interval '1 microsecond'
    ORDER BY r.beat, r.id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), named AS MATERIALIZED (
    SELECT l.id, l.attempt, m.name, l.attempt > m.retries AS dead
    FROM silent l JOIN :schema.manifest m ON m.id = l.manifest_id)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE cardinality(:schema.run_end(array_agg(l.id), array_agg(l.attempt),
    array_agg('lost'::text),
    array_agg('its handler gave no sign of life any more'::text))) END,
    coalesce(array_agg(l.name::text), '{}'), coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.attempt), '{}'),
    coalesce(array_agg(l.dead), '{}')
FROM named l;

-- name: remind
-- Followers that have not reacted to a success of their parent and are not due, among the next few in the order of
-- ids.
WITH page AS MATERIALIZED (
    SELECT f.id FROM :schema.manifest f WHERE f.follows AND f.id > $2 ORDER BY f.id LIMIT $1
), behind AS MATERIALIZED (
    SELECT f.id, coalesce((SELECT p.succeeded FROM :schema.manifest p WHERE p.name = f.parent),
        clock_timestamp()) AS due
    FROM page CROSS JOIN LATERAL (
        SELECT x.id, x.parent FROM :schema.manifest x WHERE x.id = page.id AND x.follows AND x.due IS NULL
            AND (SELECT p.successes FROM :schema.manifest p WHERE p.name = x.parent) > x.answered
        FOR NO KEY UPDATE SKIP LOCKED) f
), told AS (UPDATE :schema.manifest f SET due = b.due FROM behind b WHERE f.id = ANY (ARRAY[b.id]) RETURNING 1)
SELECT (SELECT count(*) FROM told), count(*), coalesce(max(page.id), 0) FROM page;

-- name: forgotten_before
-- Returns the moment before which orphans are deleted: the retention ago, or later if more orphans exist than are kept,
-- but never within the grace.
SELECT greatest(clock_timestamp() - $1::bigint * interval '1 microsecond', (
    SELECT least(o.orphaned_at, clock_timestamp() - $2::bigint * interval '1 microsecond') FROM :schema.manifest o
    WHERE o.orphaned_at IS NOT NULL ORDER BY o.orphaned_at DESC OFFSET $3 LIMIT 1));

-- name: empty_orphan
-- Deletes runs of orphans that are to be deleted, a bounded number at a time. A manifest that was declared again keeps
-- its runs, and a run that is not over stays.
WITH alone AS MATERIALIZED (
    SELECT m.id FROM :schema.manifest m WHERE m.orphaned_at <= $1::timestamptz
    ORDER BY m.orphaned_at, m.id FOR NO KEY UPDATE SKIP LOCKED
), old AS MATERIALIZED (
    SELECT r.id FROM alone a CROSS JOIN LATERAL (
        SELECT x.id FROM :schema.run x WHERE x.manifest_id = a.id AND x.ended IS NOT NULL LIMIT $2) r
    LIMIT $2)
DELETE FROM :schema.run r WHERE r.id = ANY (ARRAY(SELECT o.id FROM old o));

-- name: drop_orphan
-- Checks again: the condition under which its runs were deleted must still hold.
DELETE FROM :schema.manifest m
WHERE m.id = ANY (ARRAY(
        SELECT o.id FROM :schema.manifest o
        WHERE o.orphaned_at <= $1::timestamptz
          AND NOT EXISTS (SELECT FROM :schema.run r WHERE r.manifest_id = o.id)
        ORDER BY o.orphaned_at, o.id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING m.name;

-- name: bury_programs
-- Programs that ended without deleting their row. Their releases count as seen until the row expired.
WITH gone AS (
    DELETE FROM :schema.manifest_program p WHERE p.id = ANY (ARRAY(
        SELECT x.id FROM :schema.manifest_program x WHERE x.expires < clock_timestamp() - interval '1 minute'
        LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING p.release, p.expires
), last AS (
    SELECT g.release, max(g.expires) AS seen FROM gone g GROUP BY g.release
), told AS (
    UPDATE :schema.manifest_release r SET seen = greatest(r.seen, l.seen) FROM last l WHERE r.number = l.release)
SELECT count(*) FROM gone;

-- name: forget_releases
-- Releases that no program has run with for as long as runs are kept ($1), and of each owner all but the last few ($3),
-- unless they ran within the grace ($2).
DELETE FROM :schema.manifest_release r
WHERE r.number = ANY (ARRAY(
        SELECT x.number FROM (
            SELECT o.number, o.seen, (SELECT count(*) FROM :schema.manifest_release n
                WHERE n.owner = o.owner AND n.number > o.number) AS newer
            FROM :schema.manifest_release o) x
        WHERE x.seen <= clock_timestamp() - $1::bigint * interval '1 microsecond'
           OR x.newer >= $3 AND x.seen <= clock_timestamp() - $2::bigint * interval '1 microsecond'
        LIMIT $4))
  AND r.seen <= clock_timestamp() - least($1::bigint, $2::bigint) * interval '1 microsecond'
  AND NOT EXISTS (SELECT FROM :schema.manifest_program p WHERE p.release = r.number);

-- name: clean
DELETE FROM :schema.run r WHERE r.id = ANY (ARRAY(
    SELECT x.id FROM :schema.run x
    WHERE x.ended <= (SELECT clock_timestamp()) - $1::bigint * interval '1 microsecond'
    ORDER BY x.ended, x.id LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: probe
SELECT count(*) FROM (SELECT FROM :schema.manifest m, :schema.run r WHERE m.id = 0 AND r.manifest_id = m.id
    AND r.attempt = 0) x;

-- name: releases
-- The releases that run, or ran within the last hour, by owner, the newest first, with the programs of each.
SELECT r.owner, r.number, r.first, greatest(r.seen, (SELECT max(p.expires) FROM :schema.manifest_program p
           WHERE p.release = r.number AND p.expires < clock_timestamp())), r.manifests, r.sums,
       ARRAY(SELECT p.host FROM :schema.manifest_program p
           WHERE p.release = r.number AND p.expires > clock_timestamp() ORDER BY p.started, p.id LIMIT 100),
       ARRAY(SELECT p.pid FROM :schema.manifest_program p
           WHERE p.release = r.number AND p.expires > clock_timestamp() ORDER BY p.started, p.id LIMIT 100),
       ARRAY(SELECT p.started FROM :schema.manifest_program p
           WHERE p.release = r.number AND p.expires > clock_timestamp() ORDER BY p.started, p.id LIMIT 100)
FROM :schema.manifest_release r
WHERE ($1 = '' OR r.owner = $1) AND (r.seen > clock_timestamp() - interval '1 hour'
    OR EXISTS (SELECT FROM :schema.manifest_program p WHERE p.release = r.number AND p.expires > clock_timestamp()))
ORDER BY r.owner, r.number DESC LIMIT 200;

-- name: troubles
-- Counts, per kind and manifest, the runs of the last day that timed out, were lost or were skipped, and all dead runs,
-- the latest first. Each part reads the head of an index.
WITH all_of AS (
    SELECT 'dead' AS kind, m.name, x.n, x.first, x.last FROM (
        SELECT d.manifest_id, count(*) AS n, min(d.queued) AS first, max(d.queued) AS last
        FROM (SELECT r.manifest_id, r.queued FROM :schema.run r WHERE r.state = 'dead' LIMIT 1000) d
        GROUP BY d.manifest_id) x JOIN :schema.manifest m ON m.id = x.manifest_id
    UNION ALL
    SELECT 'timed_out', m.name, x.n, x.first, x.last FROM (
        SELECT d.manifest_id, count(*) AS n, min(d.ended) AS first, max(d.ended) AS last
        FROM (SELECT r.manifest_id, r.ended FROM :schema.run r
              WHERE r.state = 'timed_out' AND r.ended > now() - interval '1 day' ORDER BY r.ended DESC LIMIT 1000) d
        GROUP BY d.manifest_id) x JOIN :schema.manifest m ON m.id = x.manifest_id
    UNION ALL
    SELECT 'lost', m.name, count(*), min(d.ended), max(d.ended) FROM (
        SELECT a.run, a.ended FROM :schema.run_attempt a
        WHERE a.outcome = 'lost' AND a.ended > now() - interval '1 day' ORDER BY a.ended DESC LIMIT 1000) d
    JOIN :schema.run r ON r.id = d.run JOIN :schema.manifest m ON m.id = r.manifest_id GROUP BY m.name
    UNION ALL
    (SELECT 'skipped', m.name, m.skipped, m.skipped_at, m.skipped_at FROM :schema.manifest m
     WHERE m.skipped_at > now() - interval '1 day' ORDER BY m.skipped_at DESC LIMIT 1000)
    UNION ALL
    (SELECT 'orphan', m.name, 1, m.orphaned_at, m.orphaned_at FROM :schema.manifest m
     WHERE m.orphaned_at > now() - interval '1 day' AND m.removed_at IS NULL ORDER BY m.orphaned_at DESC LIMIT 1000))
SELECT a.kind, (array_agg(a.name::text ORDER BY a.last DESC, a.name))[1:3], count(*), sum(a.n)::bigint, min(a.first)
FROM all_of a GROUP BY a.kind;
