-- name: check_places
-- Every check returns what violates it: the rule, what it is about, and a sentence.
-- Each message that was sent to an endpoint stands in exactly one place there.
WITH place AS (
    SELECT p.id, p.endpoint, count(*) FILTER (WHERE p.place = 'handled') AS handled,
           count(*) FILTER (WHERE p.place = 'dead') AS dead, count(*) FILTER (WHERE p.place = 'discarded') AS discarded
    FROM (SELECT id, endpoint, 'handled' AS place FROM chaos.handled
          UNION ALL SELECT message_id, endpoint, 'dead' FROM :schema.dead_letter
          UNION ALL SELECT message_id, endpoint, 'discarded' FROM :schema.discarded) p
    GROUP BY p.id, p.endpoint),
want AS (
    SELECT id, endpoint, min(plan) AS plan, min(fate) AS fate, min(iid::text) AS iid
    FROM chaos.sent GROUP BY id, endpoint),
done AS (SELECT DISTINCT iid::text AS iid FROM chaos.step WHERE completed),
seen AS (
    SELECT coalesce(w.id, p.id) AS id, coalesce(w.endpoint, p.endpoint) AS endpoint, w.plan, w.fate,
           d.iid IS NOT NULL AS ended, coalesce(p.handled, 0) AS handled, coalesce(p.dead, 0) AS dead,
           coalesce(p.discarded, 0) AS discarded
    FROM want w FULL JOIN place p ON p.id = w.id AND p.endpoint = w.endpoint LEFT JOIN done d ON d.iid = w.iid),
judged AS (
    SELECT *, CASE
        WHEN fate IS NULL THEN 'invented'
        WHEN handled + dead + discarded > 1 THEN 'doubled'
        WHEN handled + dead + discarded = 0 THEN CASE WHEN fate <> 'timer' THEN 'lost' END
        WHEN fate = 'handled' AND handled = 0 THEN 'misplaced'
        WHEN fate = 'dead' AND dead = 0 THEN 'misplaced'
        WHEN fate = 'discarded' AND discarded = 0 THEN 'misplaced'
        WHEN fate = 'handled or dead' AND discarded > 0 THEN 'misplaced'
        WHEN fate IN ('answer', 'timer') AND dead > 0 THEN 'misplaced'
        WHEN fate = 'answer' AND discarded > 0 AND NOT ended THEN 'misplaced'
    END AS rule
    FROM seen)
SELECT rule, id::text, format('message %s at %s (%s): planned %s, and it was %s times handled, %s dead, %s discarded',
       id, endpoint, coalesce(plan, 'never sent'), coalesce(fate, 'nothing'), handled, dead, discarded)
FROM judged WHERE rule IS NOT NULL;

-- name: check_counters
-- The steps of an instance are numbered from 1, each number once, and only the last one completes.
SELECT CASE WHEN count(*) > count(DISTINCT n) THEN 'doubled' ELSE 'lost' END, iid::text,
       format('instance %s (%s/%s): %s steps with %s numbers from %s to %s, %s completions', iid, min(saga), min(key),
              count(*), count(DISTINCT n), min(n), max(n), count(*) FILTER (WHERE completed))
FROM chaos.step WHERE NOT look
GROUP BY iid
HAVING min(n) <> 1 OR max(n) <> count(*) OR count(DISTINCT n) <> count(*)
    OR count(*) FILTER (WHERE completed) > 1 OR max(n) <> coalesce(max(n) FILTER (WHERE completed), max(n));

-- name: check_instances
-- The rows that live are the instances that have not completed, and they remember their last step.
SELECT CASE WHEN s.iid IS NULL THEN 'lost' WHEN t.iid IS NULL OR t.completed THEN 'invented' ELSE 'state' END,
       coalesce(t.iid, s.iid)::text,
       format('instance %s (%s/%s): last step %s, completed %s, row %s', coalesce(t.iid, s.iid), coalesce(t.saga,
           s.saga),
              coalesce(t.key, s.key), t.n, t.completed, coalesce(s.state::text, 'none'))
FROM (SELECT iid, min(saga) AS saga, min(key) AS key, max(n) AS n, bool_or(completed) AS completed
      FROM chaos.step GROUP BY iid) t
FULL JOIN :schema.saga s ON s.iid = t.iid
WHERE t.iid IS NULL OR (s.iid IS NULL) <> t.completed OR (s.state ->> 'Steps')::int <> t.n;

-- name: check_versions
-- An instance's row begins with version 1, each change raises it by one, and nothing follows its end.
SELECT 'version', iid::text, format('instance %s (%s/%s): %s from version %s to %s after %s', iid, saga, key, op, old,
    new, before)
FROM (SELECT *, lag(new) OVER w AS before, lag(op) OVER w AS after FROM chaos.version WINDOW w AS (PARTITION BY iid
    ORDER BY seq)) v
WHERE CASE op WHEN 'INSERT' THEN after IS NOT NULL OR new <> 1
              WHEN 'UPDATE' THEN old IS DISTINCT FROM before OR new IS DISTINCT FROM before + 1
              ELSE old IS DISTINCT FROM before END;

-- name: check_keys
-- A key has one instance at a time.
SELECT 'key', iid::text, format('%s/%s: %s of instance %s while %s lived', saga, key, op, iid, before)
FROM (SELECT *, lag(iid) OVER w AS before, lag(op) OVER w AS after FROM chaos.version WINDOW w AS (PARTITION BY saga,
    key ORDER BY seq)) v
WHERE CASE WHEN op = 'INSERT' THEN after IS NOT NULL AND after <> 'DELETE' ELSE before IS DISTINCT FROM iid END;

-- name: check_timers
-- What fires was pending until then, and nothing is pending when all is over.
WITH s AS (
    SELECT *, lag(pending) OVER w AS before, lead(n) OVER w IS NULL AS last
    FROM chaos.step WHERE NOT look WINDOW w AS (PARTITION BY iid ORDER BY n))
SELECT 'doubled', message::text, format('timeout %s of instance %s fired at step %s, when only %s were pending',
    message, iid, n, before)
FROM s WHERE plan = 'fired' AND NOT (message = ANY (coalesce(before, '{}')))
UNION ALL
SELECT 'lost', p::text, format('timeout %s of instance %s (%s/%s) is still pending after step %s', p, iid, saga, key, n)
FROM s, unnest(pending) p WHERE last AND NOT completed;

-- name: check_ids
-- The ids that are remembered are those that were given, no more and no less.
SELECT CASE WHEN r.id IS NULL THEN 'forgotten' ELSE 'orphan' END, coalesce(r.id, g.id)::text,
       format('the id %s was %s', coalesce(r.id, g.id), CASE WHEN r.id IS NULL THEN 'given, and is not remembered'
           ELSE 'remembered, and no message has it' END)
FROM (SELECT DISTINCT id FROM chaos.sent WHERE given) g FULL JOIN :schema.sent_id r ON r.id = g.id
WHERE g.id IS NULL OR r.id IS NULL;

-- name: check_tally
-- What handlers added to shared rows is what they say they did.
SELECT CASE WHEN t.n < e.n THEN 'lost' ELSE 'doubled' END, 'tally',
    format('the shared rows add up to %s after %s additions', t.n, e.n)
FROM (SELECT sum(n) AS n FROM chaos.tally) t, (SELECT count(*) AS n FROM chaos.handled WHERE plan = 'tally') e
WHERE t.n <> e.n;

-- name: check_queues
SELECT 'stuck', id::text, format('message %s is still in the queue of %s: %s', id, endpoint, detail)
    FROM chaos.waiting();

-- name: story
-- All that the ledger and the engine's tables know of one id, in the order of time, and who was killed meanwhile.
WITH known AS (
    SELECT at, format('sent to %s by %s: %s, planned %s%s', endpoint, by, plan, fate, CASE WHEN given
        THEN ', with this id' END) AS what
    FROM chaos.sent WHERE id::text = $1
    UNION ALL SELECT at, format('handled at %s (%s) by %s', endpoint, plan, by) FROM chaos.handled WHERE id::text = $1
    UNION ALL SELECT at, format('step %s of %s (%s/%s), %s, by %s%s', n, iid, saga, key, plan, by, CASE WHEN completed
        THEN ', completes' END)
    FROM chaos.step WHERE message::text = $1 OR iid::text = $1
    UNION ALL SELECT at, format('%s of %s (%s/%s): version %s to %s', op, iid, saga, key, old, new) FROM chaos.version
        WHERE iid::text = $1
    UNION ALL SELECT died, format('dead letter at %s after %s attempts: %s: %s', endpoint, attempts, reason, error)
    FROM :schema.dead_letter WHERE message_id::text = $1
    UNION ALL SELECT at, format('discarded at %s: %s', endpoint, reason) FROM :schema.discarded
        WHERE message_id::text = $1)
SELECT format('%s  %s', to_char(at, 'HH24:MI:SS.MS'), what) FROM (
    SELECT at, what FROM known
    UNION ALL SELECT d.at, format('%s was killed %s', d.worker, d.kind) FROM chaos.blow d
    WHERE d.at BETWEEN (SELECT min(at) FROM known) AND (SELECT max(at) + interval '1 s' FROM known)) s
ORDER BY at LIMIT 60;
