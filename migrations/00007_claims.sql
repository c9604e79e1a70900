-- A leased endpoint takes a message by moving its due to the end of a lease: the row leaves the head of the queue, and
-- when nobody extends the lease or ends the message, it is due again by itself. claim counts how often that happened to
-- this row, and owner is who has it, or had it when the lease ended: NULL for a row that waits. turn is the due that
-- the row had before it was claimed. cancelled is why its handler is to stop. deaths counts the processes that died
-- with the message in hand, and deaths_alone those of them that had nothing else of the endpoint in hand; alone says
-- that this claim has not. All are NULL in every other queue, where they take no space.
DO $$
DECLARE
    number int;
BEGIN
    FOR number IN SELECT id FROM :schema.queue WHERE to_regclass(format('%I.queue_%s', :'schema', id)) IS NOT NULL LOOP
        EXECUTE format('ALTER TABLE %I.queue_%s ADD claim int, ADD owner uuid, ADD turn timestamptz, ADD cancelled text, ADD deaths int, ADD deaths_alone int, ADD alone boolean', :'schema', number);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION :schema.create_queue(name text) RETURNS int
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
            claim        int,
            owner        uuid,
            turn         timestamptz,
            cancelled    text,
            deaths       int,
            deaths_alone int,
            alone        boolean,
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
