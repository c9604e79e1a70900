-- name: temporary
-- An id of version 7 that follows from a time in milliseconds, a small number and a number. Go has the same.
CREATE FUNCTION pg_temp.id_of(ms bigint, v int, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
SELECT (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(v), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid $$;
CREATE FUNCTION pg_temp.at(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
SELECT 'epoch'::timestamptz + ms * interval '1 millisecond' $$;
CREATE TEMPORARY TABLE last_page (n bigint, ms bigint, page uuid);

-- name: number
SELECT id FROM :schema.queue WHERE endpoint = $1;

-- name: sagas
-- $1 instances. The first ones have a history; their last version is $2. $3 is when it began.
INSERT INTO :schema.saga (iid, saga, key, version, state_version, state, timeouts, started, changed, history)
SELECT pg_temp.id_of($3, 0, n), CASE WHEN n % 10 < 6 THEN 'order' WHEN n % 10 < 9 THEN 'parcel' ELSE 'refund' END,
    'k-' || lpad(n::text, 9, '0'), CASE WHEN l.n IS NULL THEN 1 + n % 7 ELSE $2::bigint END, 1,
    json_build_object('Cents', n, 'Customer', 'customer ' || n, 'Paid', n % 2 = 0, 'Note', repeat('x', 60)),
    json_build_array(json_build_object('id', pg_temp.id_of($3, 1, n), 'name', 'payment', 'kind', 'order.overdue',
        'due', to_char(pg_temp.at($4::bigint + n) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))),
    pg_temp.at($3), pg_temp.at($3), l.page
FROM generate_series(0, $1::bigint - 1) n LEFT JOIN last_page l USING (n);

-- name: timeouts
-- One for each of $1 instances, the first at $2.
INSERT INTO :queue (due, id, sent, kind, header, body)
SELECT pg_temp.at($2::bigint + n), pg_temp.id_of($3, 1, n), pg_temp.at($3), 'order.overdue', $4, '{}'
FROM generate_series(0, $1::bigint - 1) n;

-- name: waiting
-- $1 messages that the last versions have sent; the small number of their ids is $2.
INSERT INTO :queue (due, id, sent, kind, header, body)
SELECT pg_temp.at(l.ms), pg_temp.id_of(l.ms, $2, l.n), pg_temp.at(l.ms), 'payment.charge', $3,
    convert_to(json_build_object('Order', l.n, 'Card', repeat('4', 60))::text, 'UTF8')
FROM last_page l WHERE l.n < $1;

-- name: burst
-- $1 messages that were all sent within ten seconds before $2.
INSERT INTO :queue (due, id, sent, kind, header, body)
SELECT pg_temp.at($2::bigint - 10000 + n * 10000 / $1::bigint),
    pg_temp.id_of($2::bigint - 10000 + n * 10000 / $1::bigint, 3, n), pg_temp.at($2::bigint), $4, $3,
    convert_to(json_build_object('N', n, 'Text', repeat('y', 60))::text, 'UTF8')
FROM generate_series(0, $1::bigint - 1) n;

-- name: letters
-- $1 letters in $2 groups. The first group is the largest.
INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, sent,
    first_failed, died, error_group)
SELECT (ARRAY['payments', 'mails', 'labels', 'stock'])[1 + g % 4],
    pg_temp.id_of($4, 4, n), 'kind.' || g % 30, $3,
    convert_to(json_build_object('N', n, 'Text', repeat('z', 100))::text, 'UTF8'), 5, 0, 'attempts',
    format(E'cause %s: the service answered 503\nstack of %s %s', g, n,
        repeat('at package.function(file.go:12)' || E'\n', 10)), pg_temp.at($4), pg_temp.at($4),
    pg_temp.at($4 + n), substr(md5(g::text), 1, 12)
FROM generate_series(0, $1::bigint - 1) n
CROSS JOIN LATERAL (SELECT CASE WHEN n < $2 THEN n ELSE
    floor($2 * power((n * 7919 % 10007) / 10007.0, 4))::bigint END AS g) x;

-- name: discarded
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason, at)
SELECT 'orders', pg_temp.id_of($2, 5, n), 'order.overdue', 'order', 'k-' || n, 'the instance is not there',
    pg_temp.at($2::bigint + n)
FROM generate_series(0, $1::bigint - 1) n;

-- name: lives
INSERT INTO :schema.history_life (slot, iid, saga, key, ended, outcome, page)
SELECT n % 3, pg_temp.id_of($2, 6, n), 'order', 'e-' || lpad(n::text, 9, '0'), pg_temp.at($2::bigint + n),
    'completed', pg_temp.id_of($2, 7, n)
FROM generate_series(0, $1::bigint - 1) n;

-- name: runs
-- $1 runs of each manifest, an hour apart, the last one before $2.
INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, attempt, message_id, queued, ended, error)
SELECT pg_temp.id_of(t.ms, 8, m.id), m.id, 'schedule',
    CASE WHEN n = 1 AND m.id % 50 = 0 THEN 'dead' ELSE 'succeeded' END, pg_temp.at(t.ms), pg_temp.at(t.ms), 1,
    pg_temp.id_of(t.ms, 9, m.id), pg_temp.at(t.ms), CASE WHEN n = 1 AND m.id % 50 = 0 THEN NULL
    ELSE pg_temp.at(t.ms + 900) END, ''
FROM :schema.manifest m CROSS JOIN generate_series(1, $1::bigint) n
CROSS JOIN LATERAL (SELECT $2::bigint - n * 3600000 + m.id AS ms) t;

-- name: attempts
INSERT INTO :schema.run_attempt (run, attempt, message_id, sent, ended, outcome)
SELECT r.id, 1, r.message_id, r.queued, r.ended, CASE WHEN r.ended IS NOT NULL THEN 'succeeded' END FROM :schema.run r;

-- name: counters
INSERT INTO :schema.saga_counter
SELECT date_trunc('hour', now()) - h * interval '1 hour', e, s, 'optimistic', 4, 500, now(), now(), 9000, 9000, 10, 0,
    1, 0, 5, 0, 0, 100, 100, 100, 10, 0, 0, 200000, 0, 0, 0, 1000000, 2000000, 900000, 0, 0
FROM generate_series(0, 335) h, unnest(ARRAY['orders', 'payments', 'mails', 'labels', 'stock']) e,
    unnest(ARRAY['order', 'parcel', 'refund', '']) s;

-- name: sessions
INSERT INTO :schema.session (id, host, pid, queues, expires, locked)
SELECT pg_temp.id_of($2, 10, n), 'worker-' || n % 10, n, (SELECT array_agg(q.id) FROM :schema.queue q),
    now() + interval '1 day', false
FROM generate_series(1, $1::bigint) n;

-- name: copies
INSERT INTO :schema.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
SELECT 0, 'shop.events', pg_temp.at($2::bigint + n), pg_temp.id_of($2, 11, n), pg_temp.at($2), 'order.shipped', $3, '{}'
FROM generate_series(0, $1::bigint - 1) n;

-- name: audit
INSERT INTO :schema.audit (at, actor, origin, verb, target, reason, before, after)
SELECT pg_temp.at($2::bigint + n * 1000), 'ann', 'edda', (ARRAY['endpoint.pause', 'endpoint.resume', 'limit.set'])[1 + n
    % 3], (ARRAY['payments', 'mails'])[1 + n % 2], 'reason ' || n, '{"a":1}', '{"a":2}'
FROM generate_series(0, $1::bigint - 1) n;

-- name: slot
UPDATE :schema.ring SET slot = $1, most = NULL WHERE name = 'history';

-- name: leases
INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
SELECT 'lease-' || n, 'worker-' || n, 3, now(), now(), now() + interval '1 day' FROM generate_series(1, 50) n;

-- name: limits
SELECT :schema.set_limit('named/limit-' || n, 50, true) FROM generate_series(1, 20) n;

-- name: jobs
INSERT INTO :schema.dead_letter_job (action, state, endpoint, kind, error_group, reason, last, ended)
SELECT 'retry', 'done', 'mails', '', '', '', n * 100, n FROM generate_series(1, 100) n;

-- name: remember
INSERT INTO :schema.settings (name, value) VALUES ('big/now', $1);

-- name: remembered
SELECT value::bigint FROM :schema.settings WHERE name = 'big/now';

-- name: tables
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r';

-- name: scans
-- How often each table with more than $2 rows was read from one end to the other.
SELECT c.relname::text, pg_stat_get_numscans(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r' AND c.reltuples > $2;

-- name: left
SELECT count(*) FROM pg_stat_activity WHERE application_name = $1;

-- name: mark
SELECT count(*) FROM :schema.subscription_generation;

-- name: marks
SELECT pg_stat_get_numscans(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = 'subscription_generation';
