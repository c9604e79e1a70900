-- Queues for programs that have no Edda in them: they send and take with three functions, in transactions of
-- their own. The names of the queues' tables stay ours.

-- nudge notifies, when the transaction commits, whoever listens. Nothing is lost with a notification: who misses it
-- looks at the tables by and by. But one that finds no room makes the COMMIT fail, and the effects with it. Postgres
-- keeps all notifications of the server for as long as one listener of anybody's stays in a transaction, so from half
-- of the room on nobody is told.
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
