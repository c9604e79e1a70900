-- One row that tells this schema from every other: a send through a transaction of another database is
-- met by comparing it.
CREATE TABLE :schema.settings (
    name  text COLLATE "C" CONSTRAINT settings_pkey PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO :schema.settings (name, value) VALUES ('schema_id', gen_random_uuid()::text);

-- Raised by guards inside a write: the statement fails, so the COMMIT behind it in the pipeline is skipped.
CREATE FUNCTION :schema.expect(ok boolean, what text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'ED001', MESSAGE = what;
    END IF;
END $$;

CREATE TABLE :schema.queue (
    id       int GENERATED ALWAYS AS IDENTITY CONSTRAINT queue_pkey PRIMARY KEY,
    endpoint text COLLATE "C" NOT NULL
        CONSTRAINT queue_endpoint_unique UNIQUE
        CONSTRAINT queue_endpoint_valid CHECK (endpoint ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    created  timestamptz NOT NULL DEFAULT now()
);

-- Which endpoint consumes which kind. A command goes to the only one, an event to all.
CREATE TABLE :schema.subscription (
    kind  text COLLATE "C" NOT NULL,
    queue int NOT NULL CONSTRAINT subscription_queue_fkey REFERENCES :schema.queue (id) ON DELETE CASCADE,
    CONSTRAINT subscription_pkey PRIMARY KEY (kind, queue)
);

CREATE TABLE :schema.subscription_generation (
    one        boolean DEFAULT true CONSTRAINT subscription_generation_pkey PRIMARY KEY
        CONSTRAINT subscription_generation_one CHECK (one),
    generation bigint NOT NULL
);
INSERT INTO :schema.subscription_generation (generation) VALUES (1);

-- Gives roles their rights on the table of a queue: those roles that the script of migrate.Grants has written into the
-- settings. Default privileges would hold for whatever else the owner makes in this schema, too.
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

-- A queue is a table of its own: a partition of one big table would make each statement lock every partition. Rows are
-- inserted, locked and deleted, and never updated. The name is made from a number, so that no text of a user becomes an
-- identifier. The sizes are far beyond what send and the bus accept: they bound what a role that may insert can make a
-- worker read.
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
    IF number IS NULL THEN -- somebody else was creating it, and has committed
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
