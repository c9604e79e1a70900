-- Ordered delivery: in an endpoint that asks for it, at most one message of a key is in hand, the one whose turn is
-- first.
--
-- A lane is the right to handle the messages of one key. owner has it until the end of a lease; session is whom the
-- rows name that it has claimed. Where messages wait behind one that is due later, the lane has no owner, and names the
-- row that it waits for.
CREATE TABLE :schema.lane (
    queue     int NOT NULL,
    key       text COLLATE "C" NOT NULL,
    owner     uuid,
    session   uuid,
    until     timestamptz NOT NULL,
    waits_due timestamptz,
    waits_id  uuid,
    CONSTRAINT lane_pkey PRIMARY KEY (queue, key)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000
);

-- Messages that came to the head of their queue while their lane was somebody else's. due is their turn. So a busy key
-- costs its queue one move a message, however many wait. cancelled, deaths and deaths_alone are what the message's row
-- had in its queue.
CREATE TABLE :schema.parked (
    queue        int NOT NULL,
    key          text COLLATE "C" NOT NULL,
    due          timestamptz NOT NULL,
    id           uuid NOT NULL,
    sent         timestamptz NOT NULL,
    first_failed timestamptz,
    attempt      int NOT NULL,
    conflict     int NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    header       bytea NOT NULL,
    body         bytea NOT NULL,
    cancelled    text,
    deaths       int,
    deaths_alone int,
    CONSTRAINT parked_pkey PRIMARY KEY (queue, key, due, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
    vacuum_index_cleanup = on, vacuum_truncate = off,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000
);

-- How many messages wait in each of these queues, for metrics and tools. All counts stop at the limit: of ten million
-- messages, only the first ones are read. A claimed message is due at the end of its lease, so the claimed ones are
-- among the first that are not due. STABLE: all queues are read with the snapshot of the caller's statement. A queue
-- whose table is gone is left out.
CREATE FUNCTION :schema.queue_depths(queues int[], most bigint)
RETURNS TABLE (queue int, ready bigint, delayed bigint, claimed bigint, parked bigint, oldest timestamptz)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    FOREACH queue IN ARRAY queues LOOP
        CONTINUE WHEN to_regclass(format('%I.queue_%s', :'schema', queue)) IS NULL;
        EXECUTE format($sql$
            SELECT (SELECT count(*) FROM (SELECT FROM %1$I.queue_%2$s q WHERE q.due <= now() ORDER BY q.due,
                q.id LIMIT $1) r),
                   (SELECT count(*) FROM (SELECT FROM %1$I.queue_%2$s q WHERE q.due > now() ORDER BY q.due,
                       q.id LIMIT $1) d),
                   (SELECT count(c.owner) FROM (
                       SELECT q.owner FROM %1$I.queue_%2$s q WHERE q.due > now() ORDER BY q.due, q.id LIMIT 10000) c),
                   (SELECT count(*) FROM (SELECT FROM %1$I.parked p WHERE p.queue = %2$s LIMIT $1) p),
                   (SELECT q.due FROM %1$I.queue_%2$s q WHERE q.due <= now() ORDER BY q.due, q.id LIMIT 1)
            $sql$, :'schema', queue) USING most INTO ready, delayed, claimed, parked, oldest;
        RETURN NEXT;
    END LOOP;
END $$;
