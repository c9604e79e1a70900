-- Declarations of programs and changes of operators. Times are clock_timestamp(), the database's clock. Runs are
-- locked in the order of their ids, and after them manifests in the order of theirs.

-- name: lock_changes
-- The key has the oid of the table, so each schema has a lock of its own.
SELECT pg_try_advisory_xact_lock(1162101825, c.oid::int) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :'schema' AND c.relname = 'manifest';

-- name: call
SELECT :schema.nudge(:schema.channel(), $1);

-- name: clock
SELECT clock_timestamp();

-- name: stored_groups
SELECT g.name, g.owner, coalesce(g.most, 0), g.strict, g.priority::int, g.declared::text
FROM :schema.manifest_group g
WHERE g.name = ANY ($1::text[]) OR ($2::text <> '' AND g.owner = $2::text);

-- name: insert_groups
INSERT INTO :schema.manifest_group (name, owner, most, strict, priority, declared)
SELECT u.name, $1, nullif(u.most, 0), u.strict, u.priority, u.declared::jsonb
FROM unnest($2::text[], $3::int[], $4::boolean[], $5::int[], $6::text[]) u(name, most, strict, priority, declared);

-- name: update_groups
UPDATE :schema.manifest_group g
SET owner = $1, most = nullif(u.most, 0), strict = u.strict, priority = u.priority, declared = u.declared::jsonb
FROM unnest($2::text[], $3::int[], $4::boolean[], $5::int[], $6::text[]) u(name, most, strict, priority, declared)
WHERE g.name = u.name;

-- name: disown_groups
-- declared stays: if the group is declared again unchanged, the settings of an operator since then are kept.
UPDATE :schema.manifest_group g SET owner = '' WHERE g.name = ANY ($1::text[]);

-- name: adopt_groups
UPDATE :schema.manifest_group g SET owner = $1 WHERE g.name = ANY ($2::text[]);

-- name: stored_manifests
-- The manifests that the owner declares, and those it has declared before and leaves out now.
SELECT m.id, m.name, m.owner, m.definition::text, coalesce(m.parent, ''), m.follows, coalesce(g.name, ''),
    m.priority::int, m.overlap, m.retries,
       (extract(epoch FROM m.retry_delay) * 1000000)::bigint, (extract(epoch FROM m.retry_most) * 1000000)::bigint,
       coalesce((extract(epoch FROM m.timeout) * 1000000)::bigint, 0), m.kind, sha256(m.body), m.stopped,
           m.orphaned_at IS NOT NULL, m.removed_at, m.due
FROM :schema.manifest m LEFT JOIN :schema.manifest_group g ON g.id = m.group_id
WHERE m.id = ANY (ARRAY(
    SELECT d.id FROM :schema.manifest d WHERE d.name = ANY ($1::text[])
    UNION
    SELECT o.id FROM :schema.manifest o WHERE o.owner = $2 AND o.owner <> '' AND $3::boolean));

-- name: ancestors
-- UNION ends the recursion if there is a circle. An orphan never succeeds again, so it is not followed.
WITH RECURSIVE up AS (
    SELECT m.name, m.parent, m.follows FROM :schema.manifest m WHERE m.name = ANY ($1::text[])
        AND m.orphaned_at IS NULL
    UNION
    SELECT m.name, m.parent, m.follows FROM up JOIN :schema.manifest m ON m.name = up.parent
        WHERE up.follows AND m.orphaned_at IS NULL)
SELECT up.name, CASE WHEN up.follows THEN up.parent ELSE '' END FROM up;

-- name: lock_manifests
-- Also the followers ($2) of manifests that are created anew.
SELECT count(*) FROM (
    SELECT FROM :schema.manifest m WHERE m.id = ANY (ARRAY(
        SELECT unnest($1::bigint[])
        UNION SELECT f.id FROM :schema.manifest f WHERE f.parent = ANY ($2::text[]) AND f.follows))
    ORDER BY m.id FOR NO KEY UPDATE) locked;

-- name: insert_manifests
INSERT INTO :schema.manifest (name, owner, definition, parent, follows, group_id, priority, overlap, retries,
    retry_delay, retry_most,
    timeout, kind, body, stopped, due, answered, live)
SELECT u.name, $1, u.definition::jsonb, nullif(u.parent, ''), u.follows, g.id, u.priority, u.overlap, u.retries,
    u.retry_delay * interval '1 microsecond', u.retry_most * interval '1 microsecond', nullif(u.timeout,
        0) * interval '1 microsecond',
    u.kind, u.body, u.stopped, u.due, coalesce(p.successes, 0), :schema.manifest_live(u.stopped, NULL, NULL, g.id)
FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::int[], $8::boolean[], $9::int[],
    $10::bigint[], $11::bigint[],
    $12::bigint[], $13::text[], $14::bytea[], $15::boolean[], $16::timestamptz[], $17::boolean[])
    u(name, definition, parent, follows, in_group, priority, overlap, retries, retry_delay, retry_most, timeout, kind,
        body, stopped, due, afresh)
LEFT JOIN :schema.manifest_group g ON g.name = u.in_group
LEFT JOIN :schema.manifest p ON p.name = u.parent AND u.follows;

-- name: update_manifests
-- paused_at and reason stay as an operator has set them.
UPDATE :schema.manifest m
SET owner = $1, version = m.version + 1, changed = clock_timestamp(), orphaned_at = NULL, removed_at = NULL,
    definition = u.definition::jsonb, parent = nullif(u.parent, ''), follows = u.follows, group_id = g.id,
        priority = u.priority,
    overlap = u.overlap, retries = u.retries, retry_delay = u.retry_delay * interval '1 microsecond',
    retry_most = u.retry_most * interval '1 microsecond', timeout = nullif(u.timeout, 0) * interval '1 microsecond',
    kind = u.kind, body = u.body, stopped = u.stopped, due = CASE WHEN u.afresh THEN u.due ELSE m.due END,
    answered = CASE WHEN u.afresh THEN coalesce(p.successes, 0) ELSE m.answered END,
    live = :schema.manifest_live(u.stopped, m.paused_at, NULL, g.id)
FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::int[], $8::boolean[], $9::int[],
    $10::bigint[], $11::bigint[],
    $12::bigint[], $13::text[], $14::bytea[], $15::boolean[], $16::timestamptz[], $17::boolean[])
    u(name, definition, parent, follows, in_group, priority, overlap, retries, retry_delay, retry_most, timeout, kind,
        body, stopped, due, afresh)
LEFT JOIN :schema.manifest_group g ON g.name = u.in_group
LEFT JOIN :schema.manifest p ON p.name = u.parent AND u.follows
WHERE m.name = u.name;

-- name: answer_anew
-- A parent that was created anew counts its successes from zero.
UPDATE :schema.manifest f SET answered = 0 WHERE f.parent = ANY ($1::text[]) AND f.follows AND f.answered <> 0;

-- name: orphan
-- By a declaration that leaves the manifest out, or by an operator ($2).
UPDATE :schema.manifest m SET orphaned_at = coalesce(m.orphaned_at, clock_timestamp()), live = false,
    removed_at = CASE WHEN $2::boolean THEN clock_timestamp() ELSE m.removed_at END
WHERE m.id = ANY ($1::bigint[]) AND (m.orphaned_at IS NULL OR $2::boolean);

-- name: enter_release
-- The numbers have no gaps, because the caller holds the lock of changes.
WITH known AS (
    UPDATE :schema.manifest_release r SET seen = clock_timestamp() WHERE r.owner = $1 AND r.digest = $2
    RETURNING r.number
), made AS (
    INSERT INTO :schema.manifest_release (owner, digest, manifests, sums, groups)
    SELECT $1, $2, $3::text[], $4::text[], $5::text[] WHERE NOT EXISTS (SELECT FROM known) RETURNING number
)
SELECT k.number FROM known k UNION ALL SELECT m.number FROM made m;

-- name: enter_program
-- If the row of a program expired because the program was silent for too long, the program keeps its start time.
INSERT INTO :schema.manifest_program AS p (id, release, host, pid, started, expires)
VALUES ($1, $2, $3, $4, coalesce($5::timestamptz, clock_timestamp()),
    clock_timestamp() + $6::bigint * interval '1 microsecond')
ON CONFLICT ON CONSTRAINT manifest_program_pkey DO UPDATE SET expires = excluded.expires
RETURNING p.started;

-- name: renew_program
-- Returns whether the program's row exists, and which releases of the owner run.
WITH renewed AS (
    UPDATE :schema.manifest_program p SET expires = clock_timestamp() + $3::bigint * interval '1 microsecond'
    WHERE p.id = $1 RETURNING p.release
)
SELECT EXISTS (SELECT FROM renewed), ARRAY(
    SELECT r.number FROM :schema.manifest_release r WHERE r.owner = $2 AND (r.number = (SELECT w.release FROM renewed w)
        OR EXISTS (SELECT FROM :schema.manifest_program p WHERE p.release = r.number AND p.expires > clock_timestamp()))
    ORDER BY r.number);

-- name: leave_program
WITH gone AS (DELETE FROM :schema.manifest_program p WHERE p.id = $1 RETURNING p.release)
UPDATE :schema.manifest_release r SET seen = clock_timestamp() FROM gone g WHERE r.number = g.release;

-- name: rivals
-- The other releases of an owner that run, or ran within the grace, with their declarations. The first column is
-- whether the other release decides in place of this one: it runs and has a larger number. A release that has no
-- number yet will get the largest.
SELECT l.runs AND r.number > coalesce((SELECT o.number FROM :schema.manifest_release o
           WHERE o.owner = $1 AND o.digest = $2), r.number), r.manifests, r.groups
FROM :schema.manifest_release r
CROSS JOIN LATERAL (SELECT max(p.expires) AS until FROM :schema.manifest_program p WHERE p.release = r.number) p
CROSS JOIN LATERAL (SELECT coalesce(p.until > clock_timestamp(), false) AS runs) l
WHERE r.owner = $1 AND r.digest <> $2
  AND (l.runs OR clock_timestamp() - $3::bigint * interval '1 microsecond' < greatest(r.seen, p.until));

-- name: manifest_id
SELECT m.id FROM :schema.manifest m WHERE m.name = $1;

-- name: pause
UPDATE :schema.manifest m SET paused_at = coalesce(m.paused_at, clock_timestamp()), reason = $2, live = false,
    paused_by = coalesce(nullif($3, ''), session_user)
    WHERE m.name = $1;

-- name: resume
UPDATE :schema.manifest m
SET paused_at = NULL, reason = '', paused_by = '',
    live = :schema.manifest_live(m.stopped, NULL, m.orphaned_at, m.group_id)
    WHERE m.name = $1;

-- name: pause_group
UPDATE :schema.manifest_group g SET paused_at = coalesce(g.paused_at, clock_timestamp()), reason = $2,
    paused_by = coalesce(nullif($3, ''), session_user) WHERE g.name = $1 RETURNING g.id;

-- name: resume_group
UPDATE :schema.manifest_group g SET paused_at = NULL, reason = '', paused_by = '' WHERE g.name = $1 RETURNING g.id;

-- name: enliven_group
WITH held AS MATERIALIZED (
    SELECT m.id FROM :schema.manifest m WHERE m.group_id = $1 ORDER BY m.id FOR NO KEY UPDATE
)
UPDATE :schema.manifest m SET live = NOT m.live FROM held h
WHERE m.id = h.id AND m.live <> :schema.manifest_live(m.stopped, m.paused_at, m.orphaned_at, m.group_id);

-- name: manifest_state
-- The state of a manifest for the audit.
SELECT json_strip_nulls(json_build_object('paused_at', m.paused_at, 'reason', nullif(m.reason, ''),
    'paused_by', nullif(m.paused_by, ''), 'orphaned_at', m.orphaned_at)) FROM :schema.manifest m WHERE m.name = $1;

-- name: group_state
-- The state of a group for the audit.
SELECT json_strip_nulls(json_build_object('most', g.most, 'strict', g.strict, 'priority', g.priority,
    'paused_at', g.paused_at, 'reason', nullif(g.reason, ''), 'paused_by', nullif(g.paused_by, '')))
FROM :schema.manifest_group g WHERE g.name = $1;

-- name: set_group
INSERT INTO :schema.manifest_group AS g (name, most, strict, priority) VALUES ($1, nullif($2::int, 0), $3, $4)
ON CONFLICT ON CONSTRAINT manifest_group_name_unique DO UPDATE SET most = excluded.most, strict = excluded.strict,
    priority = excluded.priority;

-- name: trigger
WITH m AS MATERIALIZED (
    SELECT m.id, m.kind, m.priority, m.group_id, m.orphaned_at IS NOT NULL AS orphaned FROM :schema.manifest m
        WHERE m.name = $1
), queued AS (
    INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, priority, kind, body)
    SELECT $2, m.id, coalesce(m.group_id, 0), 'manual', CASE WHEN $3::bigint > 0 THEN 'waiting' ELSE 'queued' END,
           t.ready, t.ready, CASE WHEN $4::int > 0 THEN $4::int ELSE m.priority END, $5, $6
    FROM m, (SELECT clock_timestamp() + $3::bigint * interval '1 microsecond' AS ready) t
    WHERE NOT m.orphaned AND ($5::text IS NULL OR $5 = m.kind)
    RETURNING id
)
SELECT m.kind, m.orphaned, EXISTS (SELECT FROM queued), :schema.nudge(:schema.channel(), 'dispatch') FROM m;

-- name: activate
-- The parent's run is read without a lock: its handler has locked it, in this transaction or in an outer one that
-- waits for it. OFFSET 0 makes the planner find the run by its id, and not by an index of all active runs.
WITH parent AS MATERIALIZED (
    SELECT r.due FROM (SELECT * FROM :schema.run x WHERE x.id = $2 OFFSET 0) r
        JOIN :schema.manifest p ON p.id = r.manifest_id
    WHERE r.attempt = $3 AND r.state = 'active' AND p.name = $4
), m AS MATERIALIZED (
    SELECT m.id, m.kind, m.priority, m.group_id, m.orphaned_at IS NOT NULL AS orphaned, NOT m.follows
        AND m.parent = $4 IS TRUE AS ours
    FROM :schema.manifest m WHERE m.name = $1
), queued AS (
    INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, priority, kind, body)
    SELECT $5, m.id, coalesce(m.group_id, 0), 'activation', 'queued', parent.due, clock_timestamp(), m.priority, $6, $7
    FROM m, parent WHERE m.ours AND NOT m.orphaned AND ($6::text IS NULL OR $6 = m.kind)
    ON CONFLICT (manifest_id) WHERE origin = 'activation' AND ended IS NULL DO NOTHING
    RETURNING id
)
SELECT m.kind, m.orphaned, coalesce(m.ours, false), EXISTS (SELECT FROM parent), (SELECT id FROM queued),
       (SELECT r.id FROM :schema.run r WHERE r.manifest_id = m.id AND r.origin = 'activation' AND r.ended IS NULL),
       :schema.nudge(:schema.channel(), 'dispatch')
FROM m;

-- name: lock_runs
SELECT r.id, r.manifest_id, r.state FROM :schema.run r WHERE r.id = ANY ($1::uuid[]) ORDER BY r.id FOR NO KEY UPDATE;

-- name: lock_manifests_of_runs
SELECT :schema.manifest_lock($1::bigint[])::text;

-- name: cancel_runs
WITH ended AS (
    UPDATE :schema.run r SET state = 'cancelled', ended = clock_timestamp(), note = $2, beat = NULL, deadline = NULL
    WHERE r.id = ANY ($1::uuid[]) RETURNING r.id, r.attempt
)
UPDATE :schema.run_attempt a SET ended = clock_timestamp(), outcome = 'cancelled' FROM ended e
WHERE a.run = e.id AND a.attempt = e.attempt AND a.ended IS NULL;

-- name: runs_left
SELECT :schema.run_left($1::uuid[])::text;

-- name: runs_of_group
-- Dead runs stay: to cancel them would let their manifests fire again.
(SELECT r.id FROM :schema.run r WHERE r.state = 'queued' AND r.group_id = $1 AND r.queued <= $2 LIMIT $3)
UNION ALL (SELECT r.id FROM :schema.run r WHERE r.state = 'active' AND r.group_id = $1 AND r.queued <= $2 LIMIT $3)
UNION ALL (SELECT r.id FROM :schema.run r WHERE r.state = 'waiting' AND r.group_id = $1 AND r.queued <= $2 LIMIT $3)
LIMIT $3;

-- name: runs_not_sent
SELECT r.id FROM :schema.run r WHERE r.manifest_id = $1 AND r.queued <= $2 AND r.state IN ('waiting', 'queued')
    AND r.attempt = 0 LIMIT $3;

-- name: group_id
SELECT g.id FROM :schema.manifest_group g WHERE g.name = $1;

-- name: retry_run
UPDATE :schema.run r
SET state = 'queued', ready = clock_timestamp(), refused = 0, ended = NULL, beat = NULL, deadline = NULL, note = $2
WHERE r.id = $1;

-- name: wait_for_run
-- The schedule waits for the end of its run again, as when the run was first queued.
UPDATE :schema.manifest m SET run = r.id FROM :schema.run r
WHERE r.id = $1 AND m.id = r.manifest_id AND m.run IS NULL AND NOT m.overlap AND r.origin IN ('schedule', 'dependent');

-- name: stored_schedule
SELECT m.id, m.definition::text, m.due, m.orphaned_at IS NOT NULL, clock_timestamp() FROM :schema.manifest m
    WHERE m.name = $1;

-- name: backfill
WITH queued AS (
    INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, priority)
    SELECT u.id, m.id, coalesce(m.group_id, 0), 'backfill', 'queued', u.due, clock_timestamp(), m.priority
    FROM :schema.manifest m, unnest($2::uuid[], $3::timestamptz[]) u(id, due)
    WHERE m.id = $1 AND m.orphaned_at IS NULL
    ON CONFLICT (manifest_id, due) WHERE origin IN ('schedule', 'backfill') DO NOTHING
    RETURNING id
)
SELECT count(*), :schema.nudge(:schema.channel(), 'dispatch') FROM queued;

-- name: list_manifests
-- First the page, and then one probe per row for each joined value: a plan for many rows would read all runs even for
-- a page of one.
SELECT m.name, m.owner, m.version, m.definition::text, m.parent IS NOT NULL AND p.name IS NULL, p.succeeded,
       coalesce(g.name, ''), coalesce(g.most, 0), g.paused_at, coalesce(g.reason, ''), coalesce(g.paused_by, ''),
       CASE WHEN g.most IS NULL THEN 0 ELSE (
           SELECT count(*) FROM (SELECT FROM :schema.run a WHERE a.state = 'active'
               AND a.group_id = g.id LIMIT g.most) x) END,
       m.priority::int, m.overlap, m.retries, (extract(epoch FROM m.retry_delay) * 1000000)::bigint, (extract(epoch
           FROM m.retry_most) * 1000000)::bigint,
       coalesce((extract(epoch FROM m.timeout) * 1000000)::bigint, 0), m.kind, CASE WHEN $7::boolean THEN m.body END,
       m.stopped, m.paused_at, m.reason, m.paused_by, m.orphaned_at, m.state, m.due, m.run,
           coalesce(o.state, ''), o.ready,
           m.held, coalesce(h.error, ''),
       m.successes, m.fired, m.succeeded, m.created, m.changed, clock_timestamp()
FROM (
    SELECT m.*, s.state FROM :schema.manifest m
    CROSS JOIN LATERAL (SELECT CASE WHEN m.orphaned_at IS NOT NULL THEN 'orphan' WHEN m.held IS NOT NULL THEN 'held'
        WHEN NOT m.live THEN 'paused'
        ELSE 'live' END AS state) s
    WHERE m.name >= $1 AND m.name <> $2 AND starts_with(m.name, $3) AND ($4 = '' OR m.owner = $4) AND ($6 = ''
        OR s.state = $6)
      AND ($5 = '' OR m.group_id = (SELECT g.id FROM :schema.manifest_group g WHERE g.name = $5))
    ORDER BY m.name LIMIT $8) m
LEFT JOIN LATERAL (SELECT g.id, g.name, g.most, g.paused_at, g.reason, g.paused_by FROM :schema.manifest_group g
    WHERE g.id = m.group_id LIMIT 1) g ON true
LEFT JOIN LATERAL (SELECT p.name, p.succeeded FROM :schema.manifest p WHERE p.name = m.parent
    AND p.orphaned_at IS NULL LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT o.state, o.ready FROM :schema.run o WHERE o.id = m.run LIMIT 1) o ON true
LEFT JOIN LATERAL (SELECT h.error FROM :schema.run h WHERE h.id = m.held LIMIT 1) h ON true
ORDER BY m.name;

-- name: list_runs
-- Ids are in the order of time, as far as the clocks of the processes that made them agree.
SELECT r.id, m.name, coalesce((SELECT g.name FROM :schema.manifest_group g WHERE g.id = r.group_id), ''), r.origin,
    r.state, r.due, r.ready, r.priority::int, coalesce(r.kind, m.kind),
       CASE WHEN $8::boolean THEN coalesce(r.body, m.body) END, r.attempt, r.refused, r.message_id, r.deadline, r.beat,
           r.queued, r.ended, r.error, r.note
FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id
WHERE r.id >= $1 AND r.id <= $2 AND ($3::bigint = 0 OR r.manifest_id = $3::bigint) AND ($4::int = 0
    OR r.group_id = $4::int) AND ($5 = '' OR r.state = $5)
  AND ($6::timestamptz IS NULL OR r.queued >= $6::timestamptz) AND ($7::timestamptz IS NULL
      OR r.queued < $7::timestamptz)
ORDER BY r.id DESC LIMIT $9;

-- name: attempts
SELECT a.attempt, a.message_id, a.sent, a.began, coalesce(a.worker, ''), a.ended, coalesce(a.outcome, ''), a.error
FROM :schema.run_attempt a WHERE a.run = $1 ORDER BY a.attempt DESC LIMIT $2;

-- name: check_attempt
SELECT :schema.run_check(ARRAY[$1::uuid], ARRAY[$2::int]);

-- name: beat_attempt
SELECT cardinality(:schema.run_beat(ARRAY[$1::uuid], ARRAY[$2::int]));

-- name: schema_id
SELECT s.value FROM :schema.settings s WHERE s.name = 'schema_id';

-- name: end_attempt
SELECT :schema.run_end(ARRAY[$1::uuid], ARRAY[$2::int], ARRAY[$3::text], ARRAY[$4::text]);

-- name: outcome_of_attempt
SELECT coalesce((SELECT a.outcome FROM :schema.run_attempt a WHERE a.run = $1 AND a.attempt = $2), '');

-- name: list_groups
SELECT g.name, g.owner, coalesce(g.most, 0), g.strict, g.priority::int, g.paused_at, g.reason, g.paused_by,
       (SELECT count(*) FROM (SELECT FROM :schema.manifest m WHERE m.group_id = g.id LIMIT $2) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'queued' AND r.group_id = g.id LIMIT $2) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'active' AND r.group_id = g.id LIMIT $2) x)
FROM :schema.manifest_group g WHERE $1 = '' OR g.name = $1 ORDER BY g.name;

-- name: count_runs
SELECT (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'waiting' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'queued' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'active' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'dead' LIMIT $1) x);

-- name: depth
-- Counts end at $1. Each reads a partial index of open runs, so that the cost does not grow with the millions of runs
-- that have ended. The first due manifest is the first entry of the index that evaluation reads.
SELECT coalesce((SELECT extract(epoch FROM clock_timestamp() - m.due)::float8 FROM :schema.manifest m
                 WHERE m.live AND m.run IS NULL AND m.held IS NULL AND m.due <= clock_timestamp() ORDER BY m.due,
                     m.id LIMIT 1), 0),
       coalesce(extract(epoch FROM clock_timestamp() - q.first)::float8, 0), q.n,
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'waiting' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'active' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'dead' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r
           WHERE r.state = 'timed_out' AND r.ended > now() - interval '1 hour' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run_attempt a
           WHERE a.outcome = 'lost' AND a.ended > now() - interval '1 hour' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.manifest m
           WHERE m.skipped_at > now() - interval '1 hour' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.manifest m
           WHERE m.orphaned_at > now() - interval '1 hour' AND m.removed_at IS NULL LIMIT $1) x)
FROM (SELECT count(*) AS n, min(x.ready) AS first FROM (SELECT r.ready FROM :schema.run r
    WHERE r.state = 'queued' LIMIT $1) x) q;
