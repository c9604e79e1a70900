-- The truth comes from the file into tables of the checking session alone. Names without a schema are our own; :schema
-- is the engine's, of which the living instances and what was given up are read.

-- name: create_truth
CREATE TEMP TABLE truth_event (case_id text NOT NULL, line int NOT NULL, activity text NOT NULL,
    at timestamptz NOT NULL) ON COMMIT DROP;
CREATE TEMP TABLE truth_case (
    case_id text NOT NULL, events int NOT NULL, last_line int NOT NULL, last_activity text NOT NULL,
        last_at timestamptz NOT NULL,
    due timestamptz NOT NULL) ON COMMIT DROP;

-- name: analyze_truth
ANALYZE truth_event, truth_case;

-- name: summary
SELECT (SELECT count(*) FROM :schema.saga WHERE saga = $1),
       (SELECT count(*) FROM (SELECT FROM firing GROUP BY case_id HAVING count(*) = 1) once),
       (SELECT count(*) FROM (SELECT FROM effect GROUP BY case_id, line HAVING count(*) > 1) doubled),
       (SELECT count(*) FROM truth_event t WHERE NOT EXISTS (SELECT FROM effect e WHERE e.case_id = t.case_id
           AND e.line = t.line));

-- The checks. Each row is one thing that is wrong: which rule, which case, and what.

-- name: check_lost
SELECT 'lost', t.case_id, format('line %s of the log, %s, has no effect', t.line, t.activity)
FROM truth_event t
WHERE NOT EXISTS (SELECT FROM effect e WHERE e.case_id = t.case_id AND e.line = t.line)
ORDER BY t.line;

-- name: check_doubled
SELECT 'doubled', case_id, format('line %s of the log has %s effects, at %s', line, count(*),
    string_agg(written::text, ' and ' ORDER BY written))
FROM effect GROUP BY case_id, line HAVING count(*) > 1
ORDER BY line;

-- name: check_invented
SELECT 'invented', e.case_id, format('line %s, %s at %s, has an effect and is not in the log', e.line, e.activity, e.at)
FROM effect e
WHERE NOT EXISTS (SELECT FROM truth_event t WHERE (t.case_id, t.line, t.activity, t.at) = (e.case_id, e.line,
    e.activity, e.at))
ORDER BY e.line;

-- name: check_instances
-- The state as the last good step left it, against the log.
SELECT 'instance', coalesce(t.case_id, s.key), CASE
    WHEN s.key IS NULL THEN 'there is no instance'
    WHEN t.case_id IS NULL THEN 'there is an instance, and no such case in the log'
    ELSE format('the saga took %s events, %s of them again, the last on line %s (%s); '
                || 'the log has %s, the last on line %s (%s)',
                s.taken, s.again, s.line, s.activity, t.events, t.last_line, t.last_activity) END
FROM truth_case t
FULL JOIN (SELECT key, json_array_length(state -> 'Lines') AS taken, (state ->> 'Again')::int AS again,
    (state -> 'Last' ->> 'Line')::int AS line,
                  state -> 'Last' ->> 'Name' AS activity, (state -> 'Last' ->> 'At')::timestamptz AS at
           FROM :schema.saga WHERE saga = $1) s ON s.key = t.case_id
WHERE (s.taken, s.again, s.line, s.activity, s.at) IS DISTINCT FROM (t.events, 0, t.last_line, t.last_activity,
    t.last_at)
ORDER BY 2;

-- name: check_timers
SELECT 'timer', coalesce(t.case_id, f.case_id), CASE
    WHEN f.case_id IS NULL THEN format('the timer did not fire; it was due at %s', t.due)
    WHEN t.case_id IS NULL THEN 'a timer fired, and there is no such case in the log'
    WHEN f.times > 1 THEN format('the timer fired %s times', f.times)
    ELSE format('the timer fired at %s, before it was due at %s', f.fired, t.due) END
FROM truth_case t
FULL JOIN (SELECT case_id, count(*) AS times, min(fired) AS fired
    FROM firing GROUP BY case_id) f ON f.case_id = t.case_id
WHERE f.times IS DISTINCT FROM 1 OR t.case_id IS NULL OR f.fired < t.due
ORDER BY 2;

-- name: check_rest
SELECT 'waiting', '', format('%s messages are still in the queues', n) FROM waiting() n WHERE n > 0
UNION ALL
SELECT 'dead', '', format('message %s of kind %s died after %s attempts: %s', message_id, kind, attempts, error)
    FROM :schema.dead_letter
UNION ALL
SELECT 'discarded', key, format('message %s of kind %s was discarded: %s', message_id, kind, reason)
    FROM :schema.discarded;
