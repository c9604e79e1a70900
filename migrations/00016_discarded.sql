-- What became of a message is looked for by its id, also where many messages were discarded.
CREATE INDEX discarded_message_idx ON :schema.discarded (message_id);

-- still_queued returns which of these messages wait in the queue of an endpoint, or are in hand. They were due after
-- since, and are not before it now. If some are found where they were sent, those alone are returned: to look further
-- means to read whatever is due later.
CREATE OR REPLACE FUNCTION :schema.still_queued(endpoint text, ids uuid[], since timestamptz) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SET jit = off AS $$
DECLARE
    numbers int[] := :schema.queues_of(endpoint);
    until   timestamptz;
    number  int;
    here    uuid[];
    found   uuid[];
BEGIN
    SELECT coalesce(array_agg(p.id), '{}') INTO found FROM :schema.parked p
    WHERE p.queue = ANY (numbers) AND p.id = ANY (ids);
    FOREACH until IN ARRAY ARRAY[since + interval '1 minute', 'infinity'] LOOP
        FOREACH number IN ARRAY numbers LOOP
            EXECUTE format('SELECT array_agg(q.id) FROM %I.queue_%s q WHERE q.due >= $1 AND q.due < $2
                AND q.id = ANY ($3)', :'schema', number) INTO here USING since, until, ids;
            found := found || here;
        END LOOP;
        IF cardinality(found) > 0 THEN
            RETURN found;
        END IF;
    END LOOP;
    RETURN found;
END $$;
