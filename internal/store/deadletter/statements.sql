-- name: insert
-- The database sets died. The insert cannot fail on data: the table assigns the key, and the caller has made the
-- texts storable.
INSERT INTO :schema.dead_letter
    (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, sent, first_failed, error_group)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::int[], $7::int[],
                     $8::text[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::text[]);

-- name: insert_discarded
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[]);

-- name: insert_one_discarded
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason) VALUES ($1, $2, $3, $4, $5, $6);

-- name: letters
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died,
    error_group
FROM :schema.dead_letter WHERE id = ANY ($1::bigint[]) ORDER BY id;

-- name: walk
-- There are four statements instead of one with optional conditions, because a generic plan for that one would read
-- everything. Each reads at most $3 letters, whatever the filter selects, and returns how many it read and up to
-- which number. A kind and a time have no index. Without other conditions the upper bound is outside of the inner
-- query: without statistics the planner takes a range with two ends for narrow, and would read all of it.
WITH seen AS MATERIALIZED (
    SELECT id, endpoint, kind, died,
        octet_length(kind) + octet_length(header) + octet_length(body) + octet_length(error) AS size
        FROM :schema.dead_letter
    WHERE id > $1 ORDER BY id LIMIT $3)
SELECT s.looked, s.look_up, c.id, c.endpoint, c.size
FROM (SELECT count(*) AS looked, coalesce(max(id), 0) AS look_up FROM seen) s
LEFT JOIN LATERAL (
    SELECT * FROM seen
    WHERE id <= $2 AND ($5 = '' OR kind = $5) AND ($6 = '' OR endpoint = $6) AND died >= $7::timestamptz
        AND died < $8::timestamptz
    ORDER BY id LIMIT $4) c ON true
ORDER BY c.id;

-- name: walk_of_endpoint
WITH seen AS MATERIALIZED (
    SELECT id, endpoint, kind, died,
        octet_length(kind) + octet_length(header) + octet_length(body) + octet_length(error) AS size
        FROM :schema.dead_letter
    WHERE endpoint = $6 AND id > $1 AND id <= $2 ORDER BY id LIMIT $3)
SELECT s.looked, s.look_up, c.id, c.endpoint, c.size
FROM (SELECT count(*) AS looked, coalesce(max(id), 0) AS look_up FROM seen) s
LEFT JOIN LATERAL (
    SELECT * FROM seen WHERE ($5 = '' OR kind = $5) AND died >= $7::timestamptz AND died < $8::timestamptz
    ORDER BY id LIMIT $4) c ON true
ORDER BY c.id;

-- name: walk_of_group
WITH seen AS MATERIALIZED (
    SELECT id, endpoint, kind, died,
        octet_length(kind) + octet_length(header) + octet_length(body) + octet_length(error) AS size
        FROM :schema.dead_letter
    WHERE error_group = $9 AND id > $1 AND id <= $2 ORDER BY id LIMIT $3)
SELECT s.looked, s.look_up, c.id, c.endpoint, c.size
FROM (SELECT count(*) AS looked, coalesce(max(id), 0) AS look_up FROM seen) s
LEFT JOIN LATERAL (
    SELECT * FROM seen
    WHERE ($5 = '' OR kind = $5) AND ($6 = '' OR endpoint = $6) AND died >= $7::timestamptz AND died < $8::timestamptz
    ORDER BY id LIMIT $4) c ON true
ORDER BY c.id;

-- name: walk_of_message
-- One message may have died in several endpoints. MATERIALIZED forces the index of message ids, because without
-- statistics the order by number looks cheaper to the planner.
WITH m AS MATERIALIZED (SELECT * FROM :schema.dead_letter WHERE message_id = $10::text::uuid),
seen AS MATERIALIZED (
    SELECT id, endpoint, kind, died, error_group,
        octet_length(kind) + octet_length(header) + octet_length(body) + octet_length(error) AS size FROM m
    WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3)
SELECT s.looked, s.look_up, c.id, c.endpoint, c.size
FROM (SELECT count(*) AS looked, coalesce(max(id), 0) AS look_up FROM seen) s
LEFT JOIN LATERAL (
    SELECT * FROM seen
    WHERE ($5 = '' OR kind = $5) AND ($6 = '' OR endpoint = $6) AND ($9 = '' OR error_group = $9)
      AND died >= $7::timestamptz AND died < $8::timestamptz
    ORDER BY id LIMIT $4) c ON true
ORDER BY c.id;

-- name: groups
-- Walks from one group to the next by the index, and probes it three times for each: for the first letter, for the
-- last, and for a count that ends at its limit. Grouping would read the whole table.
WITH RECURSIVE g(error_group) AS (
    (SELECT d.error_group FROM :schema.dead_letter d WHERE d.error_group > $1 ORDER BY d.error_group LIMIT 1)
    UNION ALL
    SELECT (SELECT d.error_group FROM :schema.dead_letter d WHERE d.error_group > g.error_group
        ORDER BY d.error_group LIMIT 1)
    FROM g WHERE g.error_group IS NOT NULL
), page AS MATERIALIZED (SELECT g.error_group FROM g WHERE g.error_group IS NOT NULL LIMIT $2)
SELECT p.error_group, l.endpoint, l.kind, c.n, f.died, l.died, l.id, l.reason, l.error
FROM page p
CROSS JOIN LATERAL (SELECT d.died FROM :schema.dead_letter d WHERE d.error_group = p.error_group
    ORDER BY d.id LIMIT 1) f
CROSS JOIN LATERAL (
    SELECT d.id, d.endpoint, d.kind, d.died, d.reason, d.error FROM :schema.dead_letter d
    WHERE d.error_group = p.error_group ORDER BY d.id DESC LIMIT 1) l
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM :schema.dead_letter d WHERE d.error_group = p.error_group ORDER BY d.id LIMIT $3) counted) c
ORDER BY p.error_group;

-- name: show
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died,
    error_group, body
FROM :schema.dead_letter WHERE id = $1;

-- name: take
-- The second of two callers waits here for the first, and then finds no row.
DELETE FROM :schema.dead_letter WHERE id = $1
RETURNING id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died,
    error_group, body;

-- name: discard
WITH gone AS (
    DELETE FROM :schema.dead_letter WHERE id = $1 RETURNING endpoint, message_id, kind)
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
SELECT endpoint, message_id, kind, '', '', $2 FROM gone;

-- name: take_many
DELETE FROM :schema.dead_letter WHERE id = ANY ($1::bigint[])
RETURNING id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died,
    error_group, body;

-- name: discard_many
WITH gone AS (
    DELETE FROM :schema.dead_letter WHERE id = ANY ($1::bigint[]) RETURNING endpoint, message_id, kind)
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
SELECT endpoint, message_id, kind, '', '', $2 FROM gone;

-- name: new_job
-- The job covers the letters up to the last one at this time.
INSERT INTO :schema.dead_letter_job (action, endpoint, kind, error_group, message_id, died_from, died_before, reason,
    rate, target, plan, patch, stage, stage_left, last)
SELECT $1, $2, $3, $4, $5::text::uuid, nullif($6::timestamptz, '-infinity'), nullif($7::timestamptz, 'infinity'), $8,
    $9::double precision, $10, $11::int[], $12::json, CASE WHEN $11::int[] IS NULL THEN 0 ELSE 1 END,
       coalesce(($11::int[])[1], 0),
       coalesce((SELECT d.id FROM :schema.dead_letter d ORDER BY d.id DESC LIMIT 1), 0)
RETURNING id;

-- name: job
SELECT id, action, state, endpoint, kind, error_group, message_id::text, died_from, died_before, reason, rate, mark,
    last, ended, kept, error, created, changed, target, plan, stage, undone, patch::text
FROM :schema.dead_letter_job WHERE id = $1;

-- name: jobs
SELECT id, action, state, endpoint, kind, error_group, message_id::text, died_from, died_before, reason, rate, mark,
    last, ended, kept, error, created, changed, target, plan, stage, undone, patch::text
FROM :schema.dead_letter_job ORDER BY id DESC LIMIT $1;

-- name: cancel_job
UPDATE :schema.dead_letter_job SET state = 'cancelled', changed = clock_timestamp()
WHERE id = $1 AND state IN ('open', 'paused');

-- name: lock_job
-- Two processes that run one job alternate, step by step.
SELECT id, action, state, endpoint, kind, error_group, message_id::text, died_from, died_before, reason, rate, mark,
    last, ended, kept, error, created, changed, target, plan, stage, undone, patch::text
FROM :schema.dead_letter_job WHERE id = $1 FOR NO KEY UPDATE;

-- name: job_wait
-- A separate statement, after the lock: it must read the result of the step that the lock waited for.
SELECT extract(epoch FROM due - clock_timestamp())::double precision FROM :schema.dead_letter_job WHERE id = $1;

-- name: advance_job
-- A job that did not run for a while does not catch up: its rate counts from now.
UPDATE :schema.dead_letter_job
SET mark = $2, ended = ended + $3, kept = kept + $4, error = CASE WHEN $5 = '' THEN error ELSE $5 END,
    due = greatest(due, clock_timestamp()) + $6 * interval '1 second', changed = clock_timestamp(),
    state = CASE WHEN $2 >= last THEN 'done' ELSE state END, stage_left = greatest(stage_left - $3, 0),
    stage_sent = CASE WHEN stage > 0 AND stage_left <= $3 THEN clock_timestamp() END
WHERE id = $1
RETURNING id, action, state, endpoint, kind, error_group, message_id::text, died_from, died_before, reason, rate, mark,
    last, ended, kept, error, created, changed, target, plan, stage, undone, patch::text;

-- name: prune_jobs
DELETE FROM :schema.dead_letter_job
WHERE id = ANY (ARRAY(
    SELECT j.id FROM :schema.dead_letter_job j
    WHERE j.state IN ('done', 'cancelled') AND j.changed < now() - make_interval(secs => $1)
        AND NOT EXISTS (SELECT FROM :schema.dead_letter_sent s WHERE s.job = j.id)
    ORDER BY j.id LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: prune_sent
DELETE FROM :schema.dead_letter_sent
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM :schema.dead_letter_job j JOIN :schema.dead_letter_sent s ON s.job = j.id
    WHERE j.state IN ('done', 'cancelled') AND j.changed < now() - make_interval(secs => $1)
    LIMIT $2));

-- name: queue_of
SELECT :schema.command_queue('', $1);

-- name: keep_sent
-- The messages of a step were due after its transaction began, each a microsecond after its predecessor.
INSERT INTO :schema.dead_letter_sent (job, letter, endpoint, target, message_id, attempts, conflicts, reason, error,
    sent, first_failed, died, error_group, since, until)
SELECT $1, u.letter, u.endpoint, u.target, u.id::uuid, u.attempts, u.conflicts, u.reason, u.error, u.sent,
    u.first_failed, u.died, u.error_group, now(), clock_timestamp() + interval '10 milliseconds'
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::text[], $9::text[],
            $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::text[])
     u(letter, endpoint, target, id, attempts, conflicts, reason, error, sent, first_failed, died, error_group);

-- name: stage
SELECT stage_left, extract(epoch FROM clock_timestamp() - stage_sent)::double precision
FROM :schema.dead_letter_job WHERE id = $1;

-- name: fates
-- The outcomes of the last $2 letters that a job has sent, in two rows: for its stage, and for all of them. Each row
-- has the number of letters, the number that wait or are in hand, the number that have failed again (they are dead
-- again, or wait for the next attempt), and the error of one failed letter. If $3 is true, messages with a late due
-- time are counted, too.
WITH sent AS MATERIALIZED (
    SELECT s.letter > j.stage_mark AS staged, s.target, s.message_id, s.since
    FROM :schema.dead_letter_job j JOIN :schema.dead_letter_sent s ON s.job = j.id
    WHERE j.id = $1 ORDER BY s.letter DESC LIMIT $2),
dead AS MATERIALIZED (
    SELECT s.staged, d.id, d.error FROM sent s CROSS JOIN LATERAL (
        SELECT x.id, x.error FROM :schema.dead_letter x WHERE x.message_id = s.message_id AND x.died >= s.since
        ORDER BY x.id DESC LIMIT 1) d),
queued AS MATERIALIZED (
    SELECT t.staged, f.waiting, f.failed, f.error FROM (
        SELECT s.staged, s.target, array_agg(s.message_id) AS ids, min(s.since) AS since
        FROM sent s GROUP BY s.staged, s.target) t
    CROSS JOIN LATERAL :schema.stage_fates(t.target, t.ids, t.since, $3) f)
SELECT (SELECT count(*) FROM sent s WHERE s.staged OR a.whole),
       (SELECT coalesce(sum(q.waiting), 0)::bigint FROM queued q WHERE q.staged OR a.whole),
       (SELECT count(*) FROM dead d WHERE d.staged OR a.whole)
           + (SELECT coalesce(sum(q.failed), 0)::bigint FROM queued q WHERE q.staged OR a.whole),
       coalesce((SELECT d.error FROM dead d WHERE d.staged OR a.whole ORDER BY d.id DESC LIMIT 1),
           (SELECT max(q.error) FROM queued q WHERE q.staged OR a.whole), '')
FROM (VALUES (false), (true)) a(whole) ORDER BY a.whole;

-- name: next_stage
UPDATE :schema.dead_letter_job
SET stage = stage + 1, stage_left = plan[least(stage + 1, cardinality(plan))], stage_mark = mark, stage_sent = NULL,
    changed = clock_timestamp()
WHERE id = $1;

-- name: pause_job
UPDATE :schema.dead_letter_job SET state = 'paused', error = $2, changed = clock_timestamp() WHERE id = $1;

-- name: resume_job
UPDATE :schema.dead_letter_job
SET state = 'open', error = '', stage = 1, stage_left = plan[1], stage_mark = mark, stage_sent = NULL,
    changed = clock_timestamp()
WHERE id = $1 AND state = 'paused';

-- name: stop_job
-- Undoing a job also stops it.
UPDATE :schema.dead_letter_job
SET state = CASE WHEN state IN ('open', 'paused') THEN 'cancelled' ELSE state END, changed = clock_timestamp()
WHERE id = $1
RETURNING action, ended, undone, patch IS NOT NULL;

-- name: undo
-- Restores the letters that a job has sent and that no worker has touched since, with their numbers.
WITH chosen AS MATERIALIZED (
    SELECT s.* FROM :schema.dead_letter_sent s WHERE s.job = $1 AND s.letter > $2 ORDER BY s.letter LIMIT $3),
back AS MATERIALIZED (
    SELECT c.*, u.kind, u.header, u.body FROM chosen c
    CROSS JOIN LATERAL :schema.unsend(c.target, c.message_id, c.since, c.until) u),
restored AS (
    INSERT INTO :schema.dead_letter (id, endpoint, message_id, kind, header, body, attempts, conflicts, reason, error,
        sent, first_failed, died, error_group)
    OVERRIDING SYSTEM VALUE
    SELECT b.letter, b.endpoint, b.message_id, b.kind, b.header, b.body, b.attempts, b.conflicts, b.reason, b.error,
        b.sent, b.first_failed, b.died, b.error_group
    FROM back b RETURNING 1),
gone AS (
    DELETE FROM :schema.dead_letter_sent s WHERE s.job = $1 AND s.letter IN (SELECT b.letter FROM back b) RETURNING 1),
counted AS (
    UPDATE :schema.dead_letter_job j
    SET undone = j.undone + (SELECT count(*) FROM restored), changed = clock_timestamp()
    WHERE j.id = $1 RETURNING 1)
SELECT (SELECT count(*) FROM chosen), coalesce((SELECT max(c.letter) FROM chosen c), 0),
       (SELECT count(*) FROM restored), (SELECT count(*) FROM gone), (SELECT count(*) FROM counted);

-- name: keep_edited
INSERT INTO :schema.dead_letter_edit (letter, endpoint, message_id, sent_as, kind, header, body, reason)
VALUES ($1, $2, $3::text::uuid, $4::text::uuid, $5, $6, $7, $8);

-- name: list_edited
SELECT id, letter, endpoint, message_id::text, sent_as::text, kind, header, body, reason, by_role, at
FROM :schema.dead_letter_edit
WHERE id > $1 AND ($2 = '' OR message_id = nullif($2, '')::uuid)
ORDER BY id LIMIT $3;

-- name: list_discarded
SELECT id, endpoint, message_id::text, kind, saga, key, reason, at
FROM :schema.discarded
WHERE id > $1 AND ($2 = '' OR kind = $2) AND ($4 = '' OR endpoint = $4) AND ($5 = '' OR message_id::text = $5)
ORDER BY id LIMIT $3;

-- name: prune_discarded
DELETE FROM :schema.discarded
WHERE ctid = ANY (ARRAY(
    SELECT x.ctid FROM :schema.discarded x
    WHERE x.at < now() - make_interval(secs => $1)
    ORDER BY x.at LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: letters_of
SELECT id, endpoint, message_id::text, kind, ''::bytea, attempts, conflicts, reason, error, sent, first_failed, died,
    error_group
FROM :schema.dead_letter WHERE message_id = ANY ($1::uuid[]) ORDER BY id LIMIT 1000;

-- name: discarded_of
SELECT id, endpoint, message_id::text, kind, saga, key, reason, at
FROM :schema.discarded WHERE message_id = ANY ($1::uuid[]) ORDER BY id LIMIT 1000;
