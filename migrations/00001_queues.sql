-- Settings of the schema. The row schema_id tells this schema from every other: a send compares it, so that it refuses
-- a transaction of another database.
CREATE TABLE :schema.settings (
    name  text COLLATE "C" CONSTRAINT settings_pkey PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO :schema.settings (name, value) VALUES ('schema_id', gen_random_uuid()::text);

-- expect is a guard inside a write: when ok is not true the statement fails, and the COMMIT behind it in the pipeline
-- is skipped.
CREATE FUNCTION :schema.expect(ok boolean, what text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'ED001', MESSAGE = what;
    END IF;
END $$;

-- One row for each endpoint that was installed.
CREATE TABLE :schema.queue (
    id       int GENERATED ALWAYS AS IDENTITY CONSTRAINT queue_pkey PRIMARY KEY,
    endpoint text COLLATE "C" NOT NULL
        CONSTRAINT queue_endpoint_unique UNIQUE
        CONSTRAINT queue_endpoint_valid CHECK (endpoint ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    created  timestamptz NOT NULL DEFAULT now()
);

-- Which endpoint consumes which kind. A command has one consumer; an event goes to every consumer.
CREATE TABLE :schema.subscription (
    kind  text COLLATE "C" NOT NULL,
    queue int NOT NULL CONSTRAINT subscription_queue_fkey REFERENCES :schema.queue (id) ON DELETE CASCADE,
    CONSTRAINT subscription_pkey PRIMARY KEY (kind, queue)
);

-- A number that grows with each change of the subscriptions.
CREATE TABLE :schema.subscription_generation (
    one        boolean DEFAULT true CONSTRAINT subscription_generation_pkey PRIMARY KEY
        CONSTRAINT subscription_generation_one CHECK (one),
    generation bigint NOT NULL
);
INSERT INTO :schema.subscription_generation (generation) VALUES (1);

-- grant_queue gives roles their rights on the table of a queue: the roles that the script of migrations.Grants has
-- written into the settings. Default privileges would not do: they would hold for every other table that the owner
-- makes in this schema, too.
CREATE FUNCTION :schema.grant_queue(number int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part    text;
    grantee name;
BEGIN
    FOR part, grantee IN
        SELECT s.value, r.rolname FROM :schema.settings s JOIN pg_catalog.pg_roles r ON s.name = 'role/' || r.rolname
    LOOP
        EXECUTE format('REVOKE ALL ON %I.queue_%s FROM %I', :'schema', number, grantee);
        EXECUTE format('GRANT %s ON %I.queue_%s TO %I',
                       CASE part WHEN 'runtime' THEN 'SELECT, INSERT, UPDATE, DELETE' WHEN 'sender' THEN 'INSERT'
                           WHEN 'reader' THEN 'SELECT' END,
                       :'schema', number, grantee);
    END LOOP;
END $$;

-- create_queue makes the queue of an endpoint, if it is not there, and returns its number. A queue is a table of its
-- own: as a partition of one big table, it would make each statement lock every partition. The table's name is made
-- from the number, so that no text of a user becomes an identifier. The sizes are far above what send and the bus
-- accept; they bound what a role that may insert can make a worker read.
--
-- A transactional endpoint locks a row, and deletes it with the commit; it never updates one. The columns from claim on
-- belong to leased endpoints, and are NULL in every other queue, where they take no space. A leased endpoint claims a
-- message by moving its due to the end of a lease: the row leaves the head of the queue. When the lease is neither
-- extended nor finished, the message is due again without further action. claim counts the claims of this row. owner is
-- the session that has the message, or had it when the lease ended. was_due is the due that the row had before it was
-- claimed. cancelled is the reason why its handler is to stop. deaths counts the processes that crashed with the
-- message in hand, and deaths_alone those that had no other message of the endpoint in hand; alone says that this claim
-- has no other.
--
-- last_error is the beginning of the error for which the message was last put back, for people.
CREATE FUNCTION :schema.create_queue(name text) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    number int;
BEGIN
    SELECT id INTO number FROM :schema.queue WHERE endpoint = name;
    IF FOUND THEN
        RETURN number;
    END IF;
    INSERT INTO :schema.queue (endpoint) VALUES (name) ON CONFLICT (endpoint) DO NOTHING RETURNING id INTO number;
    IF number IS NULL THEN -- another transaction has created it, and has committed
        SELECT id INTO STRICT number FROM :schema.queue WHERE endpoint = name;
        RETURN number;
    END IF;
    EXECUTE format($ddl$
        CREATE TABLE %1$I.queue_%2$s (
            due          timestamptz NOT NULL CONSTRAINT queue_%2$s_due_finite CHECK (isfinite(due)),
            id           uuid NOT NULL,
            sent         timestamptz NOT NULL DEFAULT clock_timestamp(),
            first_failed timestamptz,
            attempt      int NOT NULL DEFAULT 0,
            conflict     int NOT NULL DEFAULT 0,
            kind         text COLLATE "C" NOT NULL CONSTRAINT queue_%2$s_kind_size CHECK (octet_length(kind) <= 255),
            header       bytea NOT NULL CONSTRAINT queue_%2$s_header_size CHECK (octet_length(header) <= 2097152),
            body         bytea NOT NULL CONSTRAINT queue_%2$s_body_size CHECK (octet_length(body) <= 16777216),
            claim        int,
            owner        uuid,
            was_due      timestamptz,
            cancelled    text,
            deaths       int,
            deaths_alone int,
            alone        boolean,
            last_error   text,
            CONSTRAINT queue_%2$s_pkey PRIMARY KEY (due, id)
        ) WITH (
            autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
            autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
            autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
            vacuum_index_cleanup = on, vacuum_truncate = off,
            toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000
        )$ddl$, :'schema', number);
    PERFORM :schema.grant_queue(number);
    RETURN number;
END $$;

-- What an operator, or a policy, has set for an endpoint while its programs run. Each process of the endpoint reads the
-- row at each poll, and a change notifies the processes. An endpoint without a row runs with the numbers of its
-- program.
CREATE TABLE :schema.endpoint_setting (
    endpoint    text COLLATE "C" CONSTRAINT endpoint_setting_pkey PRIMARY KEY
        CONSTRAINT endpoint_setting_endpoint_fkey REFERENCES :schema.queue (endpoint) ON DELETE CASCADE,
    paused_at   timestamptz, -- NULL: not paused
    reason      text NOT NULL DEFAULT '',
    -- workers of each process; NULL: the program's own number
    concurrency int CONSTRAINT endpoint_setting_concurrency_valid CHECK (concurrency BETWEEN 1 AND 10000)
);

-- queue_depths counts the messages that wait in each of these queues, for metrics and tools. Every count stops at most:
-- of ten million messages it reads only the first. A claimed message is due at the end of its lease, so claimed
-- messages are among the first that are not due. STABLE: all queues are read with the snapshot of the caller's
-- statement. A queue whose table is gone is left out.
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

-- is_queued reports whether a queue has the message of this row, for statements that look into many queues. A queue
-- whose table is gone has none. VOLATILE gives each call a snapshot of its own: a claim that has waited for a lane asks
-- for the message that the lane waits for, which may have been written together with the lane's row, after the claim's
-- own snapshot.
CREATE FUNCTION :schema.is_queued(queue int, due timestamptz, id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found boolean;
BEGIN
    IF to_regclass(format('%I.queue_%s', :'schema', queue)) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I.queue_%s q WHERE q.due = $1 AND q.id = $2)', :'schema',
        queue) INTO found USING due, id;
    RETURN found;
END $$;
