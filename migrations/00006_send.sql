-- Sending from database/sql, psql and other languages, with scalar arguments only. The functions before
-- send are its parts; call send.

-- What is wrong with a message is said here, before anything is written: 22023, or the error of the JSON
-- text itself (22P02, 22P05: a lone surrogate, a NUL). A header that passed is one flat object of strings
-- that every worker can read.
CREATE FUNCTION :schema.check_message(kind text, body bytea, header json, id uuid, due timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    entries int;
    longest int;
    total   int;
    texts   boolean;
    own     int;
    size    int;
    strange text;
BEGIN
    IF (kind COLLATE "C" ~ '^[a-z][a-z0-9_.-]{0,62}$') IS NOT TRUE THEN
        RAISE EXCEPTION 'kind must match [a-z][a-z0-9_.-]{0,62}' USING ERRCODE = '22023';
    ELSIF (octet_length(body) <= 1048576) IS NOT TRUE THEN
        RAISE EXCEPTION 'body must be given, with at most 1048576 bytes' USING ERRCODE = '22023';
    ELSIF id = '00000000-0000-0000-0000-000000000000' THEN
        RAISE EXCEPTION 'id must not be the nil UUID: leave it out for a new one' USING ERRCODE = '22023';
    ELSIF NOT (isfinite(due) AND due BETWEEN '2000-01-01 00:00:00+00' AND now() + interval '10 years') THEN
        RAISE EXCEPTION 'due must be within 10 years, and not before the year 2000' USING ERRCODE = '22023';
    ELSIF header::text = '{}' OR header IS NULL THEN
        RETURN;
    ELSIF json_typeof(header) <> 'object' OR octet_length(header::text) > 1048576 THEN
        RAISE EXCEPTION 'header must be a flat JSON object of strings' USING ERRCODE = '22023';
    END IF;
    -- The names that begin with edda- are the bus's own, and come on top of what a caller may give. There are these,
    -- and each is given once; what a newer program may add to them comes with a migration.
    SELECT count(*) FILTER (WHERE NOT n.own), max(greatest(octet_length(h.key), octet_length(h.value #>> '{}'))),
           sum(n.size) FILTER (WHERE NOT n.own), bool_and(json_typeof(h.value) = 'string'),
           count(*) FILTER (WHERE n.own), sum(n.size) FILTER (WHERE n.own),
           left(min(h.key) FILTER (WHERE n.own AND h.key NOT IN ('edda-version', 'edda-intent', 'edda-from',
               'edda-correlation', 'edda-conversation', 'edda-related', 'edda-instance', 'edda-origin', 'edda-expire',
               'edda-manifest', 'edda-run', 'edda-run-attempt', 'edda-fire-due', 'edda-fire-zone')), 80)
    INTO entries, longest, total, texts, own, size, strange
    FROM json_each(header) h,
         LATERAL (SELECT lower(left(h.key, 5)) = 'edda-' AS own,
             octet_length(h.key) + octet_length(h.value #>> '{}') AS size) n;
    IF NOT texts THEN
        RAISE EXCEPTION 'header must be a flat JSON object of strings' USING ERRCODE = '22023';
    ELSIF strange IS NOT NULL THEN
        RAISE EXCEPTION 'header %: names that begin with edda- are the bus''s own, and this is none of them', strange
            USING ERRCODE = '22023';
    ELSIF entries > 64 OR longest > 8192 OR total > 65536 OR own > 13 OR size > 8192 THEN
        RAISE EXCEPTION 'header must have at most 64 entries of 8 KiB each, 64 KiB together; '
            'of the bus''s own at most 13, 8 KiB together'
            USING ERRCODE = '22023';
    END IF;
    -- A worker keeps what a newer program wrote for one, and a relay holds up all that is behind it: nobody else may
    -- say so.
    IF EXISTS (SELECT FROM json_each_text(header) h WHERE h.key = 'edda-version' AND h.value <> '1') THEN
        RAISE EXCEPTION 'edda-version must be 1, which is what this schema knows' USING ERRCODE = '22023';
    END IF;
END $$;

-- The queues a message goes to. A command has one, found by its kind unless the endpoint is named.
CREATE FUNCTION :schema.command_queue(kind text, endpoint text) RETURNS int
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C" := command_queue.kind;
    place  text COLLATE "C" := command_queue.endpoint;
    queues int[];
    names  text;
BEGIN
    IF place IS NOT NULL THEN
        SELECT array_agg(q.id) INTO queues FROM :schema.queue q WHERE q.endpoint = place;
        IF queues IS NULL THEN
            RAISE EXCEPTION 'there is no endpoint %', place
                USING ERRCODE = 'ED002', HINT = 'Run the endpoint once, or install it.';
        END IF;
        RETURN queues[1];
    END IF;
    SELECT array_agg(q.id), string_agg(q.endpoint, ', ' ORDER BY q.endpoint) INTO queues, names
    FROM :schema.subscription s JOIN :schema.queue q ON q.id = s.queue WHERE s.kind = wanted;
    IF queues IS NULL THEN
        RAISE EXCEPTION 'no endpoint consumes %', wanted
            USING ERRCODE = 'ED002',
                HINT = 'Run the endpoint that handles it once, or install it, or name one in the argument endpoint.';
    ELSIF cardinality(queues) > 1 THEN
        RAISE EXCEPTION 'several endpoints consume %: %', wanted, names
            USING ERRCODE = 'ED003', HINT = 'Name one in the argument endpoint, or publish.';
    END IF;
    RETURN queues[1];
END $$;

-- An event goes to every queue whose endpoint consumes it. A subscriber that is being added waits for us, or
-- we for it; the list is read by a statement of its own, whose snapshot is younger than the lock. Where the
-- whole transaction has one snapshot, an older one, locking the row makes Postgres refuse it with 40001.
CREATE FUNCTION :schema.event_queues(kind text) RETURNS int[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C" := event_queues.kind;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1162101825, tableoid::int) FROM :schema.subscription_generation;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM :schema.subscription_generation FOR SHARE;
    END IF;
    RETURN ARRAY(SELECT s.queue FROM :schema.subscription s WHERE s.kind = wanted ORDER BY s.queue);
END $$;

-- Remembers the id of a message for seven days; false when it was sent before with the same content.
CREATE FUNCTION :schema.remember_id(id uuid, sum bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stored bytea;
BEGIN
    INSERT INTO :schema.sent_id (id, sum) VALUES (remember_id.id, remember_id.sum) ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    SELECT s.sum INTO stored FROM :schema.sent_id s WHERE s.id = remember_id.id;
    IF stored IS DISTINCT FROM remember_id.sum THEN
        RAISE EXCEPTION 'message id % was sent before with another content', remember_id.id USING ERRCODE = 'ED004';
    END IF;
    RETURN false;
END $$;

-- send writes a message in the caller's transaction:
--
--   SELECT * FROM edda.send(kind => 'order.place', body => convert_to('{"OrderID":"7"}', 'UTF8'));
--
-- A literal given as bytea is read with backslash escapes, hence convert_to. endpoint overrides routing. With publish
-- the message goes to every endpoint that consumes the kind, possibly to none. due is the earliest moment of handling;
-- null and what has passed are now. A message sent with an id may be sent again for seven days: duplicate is then true,
-- and nothing is written. Errors: 22023 (an argument), ED002 (no endpoint), ED003 (several), ED004 (the id was used
-- with another endpoint, kind or body). header may have the bus's own names, which are the caller's word: edda-from and
-- edda-origin choose where replies go, edda-instance the instance that the message is for, and edda-expire (such as
-- 1m30s) how long after it was sent the message is discarded if it was not handled.
CREATE FUNCTION :schema.send(
    kind text, body bytea, header json DEFAULT '{}', endpoint text DEFAULT NULL, publish boolean DEFAULT false,
    id uuid DEFAULT NULL, due timestamptz DEFAULT NULL,
    OUT message_id uuid, OUT copies int, OUT duplicate boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    queues   int[];
    target   int;
    envelope text := coalesce(send.header::text, '{}');
    -- A plain literal with a backslash means what standard_conforming_strings of the caller's session says.
    blank    text := E' \t\r\n';
    random   bytea;
BEGIN
    copies := 0;
    duplicate := false;
    message_id := send.id;
    PERFORM :schema.check_message(send.kind, send.body, send.header, send.id, send.due);
    IF send.publish IS NOT TRUE THEN
        queues := ARRAY[:schema.command_queue(send.kind, send.endpoint)];
    ELSIF send.endpoint IS NOT NULL THEN
        RAISE EXCEPTION 'a message that is published goes to all who consume it: leave out the endpoint'
            USING ERRCODE = '22023';
    ELSE
        queues := :schema.event_queues(send.kind);
        IF send.header ->> 'edda-intent' IS NULL THEN
            envelope := ltrim(substr(ltrim(envelope, blank), 2), blank); -- behind the brace
            envelope := '{"edda-intent":"publish"' || CASE WHEN starts_with(envelope, '}') THEN ''
                ELSE ',' END || envelope;
        END IF;
    END IF;

    IF message_id IS NULL THEN -- a UUIDv7, so that ids made one after another stand beside each other in an index
        random := overlay(uuid_send(gen_random_uuid())
            PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6);
        message_id := encode(set_bit(set_bit(random, 52, 1), 53, 1), 'hex')::uuid;
    ELSIF NOT :schema.remember_id(message_id,
        sha256(convert_to(coalesce(send.endpoint, '') || E'\n' || send.kind || E'\n', 'UTF8') || send.body)) THEN
        duplicate := true;
        RETURN;
    END IF;

    FOREACH target IN ARRAY queues LOOP
        EXECUTE format('INSERT INTO %I.queue_%s (due, id, kind, header, body) '
                       'VALUES (greatest($1, clock_timestamp()), $2, $3, $4, $5)',
                       :'schema', target)
        USING send.due, message_id, send.kind, convert_to(envelope, 'UTF8'), send.body;
        copies := copies + 1;
    END LOOP;
END $$;

-- Queues for programs that have no Edda in them: they send and take with three functions, in transactions of
-- their own. The names of the queues' tables stay ours.

-- nudge notifies the listeners when the transaction commits. Nothing is lost with a notification: a process that misses
-- one looks at the tables by and by. But a notification for which the server has no room makes the COMMIT fail, and the
-- effects with it. Postgres keeps all notifications of the server as long as one listener, of any program, stays in a
-- transaction. So nudge sends none while half of the room is taken.
CREATE FUNCTION :schema.nudge(channel text, payload text) RETURNS text
LANGUAGE sql AS $$
    SELECT CASE WHEN pg_notification_queue_usage() < 0.5 THEN pg_notify(channel, payload)::text ELSE '' END
$$;

-- send_all writes messages to the queue of one endpoint, due in the order of the array:
--
--   SELECT edda.send_all('orders', '[{"kind":"order.place","header":{},"body":"eyJPcmRlcklEIjoiNyJ9"}]');
--
-- body is base64, header may be left out, and so may id. Unlike that of send an id is not remembered: the same
-- message may be sent again. With channel, workers that listen there are woken when the transaction commits, and
-- Postgres then commits all such transactions of the cluster one after another. Returns how many were written.
-- Errors: 22023 (a message), ED002 (no such endpoint).
CREATE FUNCTION :schema.send_all(endpoint text, messages json, channel text DEFAULT NULL) RETURNS int
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    target  int := :schema.command_queue('', coalesce(send_all.endpoint, ''));
    written int;
BEGIN
    PERFORM :schema.check_message(m.kind, decode(m.body, 'base64'), m.header, m.id, NULL)
    FROM json_to_recordset(messages) m(id uuid, kind text, header json, body text);
    EXECUTE format($sql$
        INSERT INTO %I.queue_%s (due, id, kind, header, body)
        SELECT $2 + m.place * interval '1 microsecond', coalesce(m.id, gen_random_uuid()), m.kind,
               convert_to(coalesce(m.header::text, '{}'), 'UTF8'), decode(m.body, 'base64')
        FROM ROWS FROM (json_to_recordset($1) AS (id uuid, kind text, header json, body text)) WITH ORDINALITY m(id,
            kind, header, body, place)
        $sql$, :'schema', target)
    USING messages, clock_timestamp();
    GET DIAGNOSTICS written = ROW_COUNT;
    IF channel IS NOT NULL AND written > 0 THEN
        PERFORM :schema.nudge(channel, target::text);
    END IF;
    RETURN written;
END $$;

-- take locks up to most messages of an endpoint that are due, oldest first, and leaves out those that somebody
-- else has in hand. They are the caller's until its transaction ends; those that it did not give to done are then
-- in the queue as before. Error: 22023 when most is not 1 to 10,000; without a limit it would lock the whole queue.
CREATE FUNCTION :schema.take(endpoint text, most int)
RETURNS TABLE (claim tid, message_id uuid, kind text, header bytea, body bytea, sent timestamptz)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    IF (take.most BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'most must be 1 to 10000' USING ERRCODE = '22023';
    END IF;
    RETURN QUERY EXECUTE format($sql$
        SELECT q.ctid, q.id, q.kind::text, q.header, q.body, q.sent FROM %I.queue_%s q
        WHERE q.due <= now() ORDER BY q.due, q.id LIMIT $1 FOR UPDATE SKIP LOCKED
        $sql$, :'schema', :schema.command_queue('', coalesce(take.endpoint, '')))
    USING most;
END $$;

-- done deletes messages that take gave in this transaction, by their claims and ids. ED001 when one of them is not
-- there: then nothing may commit. A claim is a place in the table, which says nothing in another transaction.
CREATE FUNCTION :schema.done(endpoint text, claims tid[], ids uuid[]) RETURNS int
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    removed int;
BEGIN
    EXECUTE format('DELETE FROM %I.queue_%s q WHERE q.ctid = ANY ($1) AND q.id = ANY ($2)',
                   :'schema', :schema.command_queue('', coalesce(done.endpoint, '')))
    USING claims, ids;
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM :schema.expect(removed = cardinality(claims), 'a taken message was gone');
    RETURN removed;
END $$;
