-- A job for dead letters may go in stages and stop by itself, send to another endpoint, change the bodies, and be
-- undone.
ALTER TABLE :schema.dead_letter_job
    DROP CONSTRAINT dead_letter_job_state,
    ADD CONSTRAINT dead_letter_job_state CHECK (state IN ('open', 'paused', 'done', 'cancelled')),
    ADD COLUMN target     text COLLATE "C" NOT NULL DEFAULT '', -- the endpoint to send to; '' is where each died
    ADD COLUMN patch      json,                                 -- a merge patch (RFC 7396) for the bodies
    ADD COLUMN plan       int[],                                -- letters of each stage, and of all after the last
    ADD COLUMN stage      int NOT NULL DEFAULT 0,
    ADD COLUMN stage_left int NOT NULL DEFAULT 0,               -- letters that the stage still has to send
    ADD COLUMN stage_mark bigint NOT NULL DEFAULT 0,            -- the letters of the stage are beyond it
    ADD COLUMN stage_sent timestamptz,                          -- since when it waits for their fates
    ADD COLUMN undone     bigint NOT NULL DEFAULT 0;            -- letters that went back

-- The letters that a job has sent: all of a letter but its header and its body, which the message has.
CREATE TABLE :schema.dead_letter_sent (
    job          bigint NOT NULL,
    letter       bigint NOT NULL,
    endpoint     text COLLATE "C" NOT NULL,
    target       text COLLATE "C" NOT NULL, -- the endpoint that it was sent to
    message_id   uuid NOT NULL,
    attempts     int NOT NULL,
    conflicts    int NOT NULL,
    reason       text NOT NULL,
    error        text NOT NULL,
    sent         timestamptz,
    first_failed timestamptz,
    died         timestamptz NOT NULL,
    error_group  text COLLATE "C" NOT NULL,
    since        timestamptz NOT NULL, -- its message was due between these two
    until        timestamptz NOT NULL,
    CONSTRAINT dead_letter_sent_pkey PRIMARY KEY (job, letter)
);

-- queues_of returns the queue of an endpoint, and those of its partitions.
CREATE FUNCTION :schema.queues_of(endpoint text) RETURNS int[]
LANGUAGE sql STABLE AS $$
SELECT coalesce(array_agg(q.id), '{}') FROM :schema.queue q
WHERE q.endpoint = queues_of.endpoint OR starts_with(q.endpoint, queues_of.endpoint || '.p')
    AND substr(q.endpoint, length(queues_of.endpoint) + 3) ~ '^[0-9]+$'
$$;

-- still_queued returns which of these messages wait in the queue of an endpoint, or are in hand. They were due after
-- since, and are not before it now.
CREATE FUNCTION :schema.still_queued(endpoint text, ids uuid[], since timestamptz) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SET jit = off AS $$
DECLARE
    numbers int[] := :schema.queues_of(endpoint);
    number  int;
    here    uuid[];
    found   uuid[];
BEGIN
    SELECT coalesce(array_agg(p.id), '{}') INTO found FROM :schema.parked p
    WHERE p.queue = ANY (numbers) AND p.id = ANY (ids);
    FOREACH number IN ARRAY numbers LOOP
        EXECUTE format('SELECT array_agg(q.id) FROM %I.queue_%s q WHERE q.due >= $1 AND q.id = ANY ($2)', :'schema',
            number) INTO here USING since, ids;
        found := found || here;
    END LOOP;
    RETURN found;
END $$;

-- unsend takes one message out of the queue of an endpoint, in which it was due between since and until, if nobody has
-- touched it. A message that a transaction has in hand is passed over.
CREATE FUNCTION :schema.unsend(endpoint text, message_id uuid, since timestamptz, until timestamptz)
RETURNS TABLE (kind text, header bytea, body bytea)
LANGUAGE plpgsql VOLATILE SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    number int;
BEGIN
    FOREACH number IN ARRAY :schema.queues_of(endpoint) LOOP
        RETURN QUERY EXECUTE format($sql$
            DELETE FROM %I.queue_%s q WHERE q.ctid = ANY (ARRAY(
                SELECT x.ctid FROM %1$I.queue_%2$s x
                WHERE x.due BETWEEN $1 AND $2 AND x.id = $3 AND x.attempt = 0 AND x.conflict = 0
                    AND x.first_failed IS NULL AND x.claim IS NULL AND x.deaths IS NULL
                ORDER BY x.due LIMIT 1 FOR UPDATE SKIP LOCKED))
            RETURNING q.kind::text, q.header, q.body
            $sql$, :'schema', number) USING since, until, message_id;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
END $$;
