-- Rows of worlds that no engine would write in a moment, or at all.

-- name: living
-- Instances of three sagas, with ascending times of start; every fourth waits for a timeout.
INSERT INTO :schema.saga (iid, saga, key, version, state_version, state, timeouts, started, changed)
SELECT :schema.world_id(n), CASE WHEN n % 10 = 0 THEN 'refund' WHEN n % 10 = 1 THEN 'parcel' ELSE 'order' END,
       '2026-' || lpad(n::text, 7, '0'), 1 + n % 7, 0, json_build_object('Cents', n * 7, 'Paid', n % 3 = 0),
       CASE WHEN n % 4 = 0 THEN json_build_array(json_build_object('name', 'payment', 'kind', 'order.overdue',
           'due', to_char(now() AT TIME ZONE 'UTC' + (n % 90) * interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
           'id', :schema.world_id(n + 100000000))) END,
       now() - n * interval '1 second', now() - (n / 2) * interval '1 second'
FROM generate_series(1, $1::int) n;

-- name: ids
-- An id of version 7 whose time is some seconds ago; the rest depends on n only.
CREATE FUNCTION :schema.world_id(n bigint) RETURNS uuid
LANGUAGE sql STABLE AS $$
SELECT encode(substring(int8send((extract(epoch FROM now()) * 1000)::bigint - (n % 1000000) * 1000) FROM 3 FOR 6)
    || '\x7000'::bytea || '\x8000'::bytea || substring(int8send(n) FROM 3 FOR 6), 'hex')::uuid
$$;

-- name: dead
-- Letters of three endpoints in groups. The first groups have most.
INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, sent,
    first_failed, died, error_group)
SELECT (ARRAY['payments', 'mails', 'erp'])[1 + g % 3], :schema.world_id(n),
       (ARRAY['payment.charge', 'mail.send', 'invoice.export'])[1 + g % 3], '{}', convert_to('{"Order":"2026-'
       || lpad(n::text, 7, '0') || '"}', 'UTF8'), 1 + n % 5, 0, '',
       (ARRAY['the bank refused charge ', 'the mailbox of customer is full: ', 'ERP error '])[1 + g % 3] || n
       || ' (cause ' || chr(65 + g % 26) || chr(65 + g / 26) || '): see the log of gateway', now() - interval '3 days',
       now() - interval '2 days', now() - (($1::int - n) * interval '1 second'), left(md5('group ' || g), 12)
FROM (SELECT n, (n::bigint * n % $2::int)::int AS g FROM (SELECT generate_series(1, $1::int)) s(n)) m;

-- name: every group
-- The groups that the squares have left out.
INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error,
    sent, died, error_group)
SELECT (ARRAY['payments', 'mails', 'erp'])[1 + g % 3], :schema.world_id(900000 + g),
       (ARRAY['payment.charge', 'mail.send', 'invoice.export'])[1 + g % 3], '{}', '{}', 1, 0, '',
       'a cause that came once: ' || chr(65 + g % 26) || chr(65 + g / 26), now() - interval '5 days',
       now() - interval '4 days' + g * interval '1 second', left(md5('group ' || g), 12)
FROM generate_series(0, $1::int - 1) g
WHERE NOT EXISTS (SELECT FROM :schema.dead_letter d WHERE d.error_group = left(md5('group ' || g), 12));

-- name: hostile letter
-- A letter whose kind, header, reason and error are such a text. Its body is bytes that are no JSON.
INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, sent,
    error_group)
VALUES ('doors', :schema.world_id($1::int), left($2::text, 120), convert_to(json_build_object('note', $2,
    'traceparent', $2)::text, 'UTF8'), convert_to($2, 'UTF8') || '\x00ff'::bytea, 1, 0, $2, $2, now(),
    left(md5('hostile ' || $1::int), 12));

-- name: hostile job
INSERT INTO :schema.dead_letter_job (action, endpoint, kind, error_group, reason, last, error)
VALUES ('retry', $1, $1, $1, $1, 1, $1);

-- name: hostile instance
INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
VALUES (:schema.world_id($1::int), $2::text || '!', $2, 1, 0, json_build_object($2::text, $2));

-- name: hostile process
INSERT INTO :schema.session (id, host, pid, queues, expires, locked)
SELECT :schema.world_id(1), $1, 1, array_agg(id), clock_timestamp() + interval '1 day', false FROM :schema.queue;

-- name: hostile holder
INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
VALUES ('guard', $1, 1, now(), now(), now() + interval '1 day');

-- name: newer
INSERT INTO :schema.migration (version, name, breaking) VALUES (9999, 'what nobody knows yet', true);

-- name: revoke
-- A role that may read all else.
REVOKE ALL ON :schema.dead_letter FROM :role;

-- name: dead rows
-- More rows of a queue than a pin may keep, deleted, and as many transactions as make a pin old. The session ends after
-- it: before PostgreSQL 15 an idle session keeps its counts of dead rows to itself, and later versions for ten seconds.
DO $dead$
DECLARE
    number int;
BEGIN
    SELECT id INTO number FROM :schema.queue WHERE endpoint = 'reports';
    EXECUTE format('INSERT INTO %I.queue_%s (due, id, kind, header, body) SELECT now(), gen_random_uuid(), '
        '''report.make'', ''{}'', ''{}'' FROM generate_series(1, 12000)', :'schema', number);
    EXECUTE format('DELETE FROM %I.queue_%s', :'schema', number);
    FOR n IN 1..1100 LOOP
        BEGIN
            PERFORM pg_current_xact_id();
            INSERT INTO :schema.settings (name, value) VALUES ('world', 'x');
            DELETE FROM :schema.settings WHERE name = 'world';
        EXCEPTION WHEN division_by_zero THEN NULL; -- so that each round is a transaction of its own
        END;
    END LOOP;
END $dead$;

-- name: three days
UPDATE :schema.ring SET since = since - interval '3 days' WHERE name = 'history';
SELECT :schema.rotate_ring('history');

-- name: idle
UPDATE :schema.history SET at = at - interval '3 hours'
WHERE id = (SELECT h.id FROM :schema.history h ORDER BY h.id LIMIT 1);

-- name: lease
-- A task that only one program of the shop does at a time.
INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
VALUES ('exports', 'shop-2/5e0c1a9b7d42', 3, now(), now(), now() + interval '1 day');
