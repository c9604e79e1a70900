-- stage_fates counts the messages among ids that still wait in the queues of an endpoint or are in hand, and the ones
-- among them that have failed at least once; error is the error of one of these. It replaces still_queued, which could
-- not see a failure before the last attempt. The messages were due after since, and are not due before it now. Where
-- whole is false and some messages wait near the place where they were sent, only these are counted: the look further
-- reads everything that is due later. It is STABLE, so that it reads with the snapshot of the statement that calls it.
DROP FUNCTION :schema.still_queued(text, uuid[], timestamptz);
CREATE FUNCTION :schema.stage_fates(endpoint text, ids uuid[], since timestamptz, whole boolean,
    OUT waiting bigint, OUT failed bigint, OUT error text)
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    numbers int[] := :schema.queues_of(endpoint);
    bounds  timestamptz[] := ARRAY[since, since + interval '1 minute', 'infinity'];
    number  int;
    found   record;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE p.attempt > 0), max(p.last_error) FILTER (WHERE p.attempt > 0)
    INTO waiting, failed, error FROM :schema.parked p WHERE p.queue = ANY (numbers) AND p.id = ANY (ids);
    FOR n IN 1 .. 2 LOOP
        FOREACH number IN ARRAY numbers LOOP
            EXECUTE format('SELECT count(*) AS n, count(*) FILTER (WHERE q.attempt > 0) AS failed,
                max(q.last_error) FILTER (WHERE q.attempt > 0) AS error
                FROM %I.queue_%s q WHERE q.due >= $1 AND q.due < $2 AND q.id = ANY ($3)',
                :'schema', number) INTO found USING bounds[n], bounds[n + 1], ids;
            waiting := waiting + found.n;
            failed := failed + found.failed;
            error := coalesce(found.error, error);
        END LOOP;
        IF waiting > 0 AND NOT whole THEN
            RETURN;
        END IF;
    END LOOP;
END $$;
