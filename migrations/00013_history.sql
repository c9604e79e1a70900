-- What happened to messages and instances. A page is one transaction of an endpoint, and package history reads its
-- bytes. They are mostly ids, which do not compress.
ALTER TABLE :schema.saga ADD COLUMN history uuid; -- the page that tells of the last version that is in one

CREATE TABLE :schema.history (
    slot     smallint NOT NULL,
    id       uuid NOT NULL, -- of version 7
    at       timestamptz NOT NULL DEFAULT now(),
    endpoint text COLLATE "C" NOT NULL,
    messages int NOT NULL,
    page     bytea NOT NULL
) PARTITION BY LIST (slot);
ALTER TABLE :schema.history ALTER COLUMN page SET STORAGE EXTERNAL;
CREATE INDEX history_id_idx ON :schema.history (id);

-- Which page tells of an id, of a message or of an instance: of one between first and last. The first six bytes of the
-- two are apart by 100 at most.
CREATE TABLE :schema.history_range (
    slot  smallint NOT NULL,
    first uuid NOT NULL,
    last  uuid NOT NULL,
    page  uuid NOT NULL
) PARTITION BY LIST (slot);
CREATE INDEX history_range_last_idx ON :schema.history_range (last, first);

-- Instances that have ended. The iid is of version 7, so it has the time at which the instance began.
CREATE TABLE :schema.history_life (
    slot    smallint NOT NULL,
    iid     uuid NOT NULL,
    saga    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    ended   timestamptz NOT NULL DEFAULT now(),
    outcome text COLLATE "C" NOT NULL,
    page    uuid NOT NULL -- that tells of the last version
) PARTITION BY LIST (slot);
CREATE INDEX history_life_key_idx ON :schema.history_life (saga, key, ended);
CREATE INDEX history_life_ended_idx ON :schema.history_life (saga, ended);
CREATE INDEX history_life_iid_idx ON :schema.history_life (iid);

-- A page of some thousand bytes stays in its row. Rows are never changed, so there is nothing to vacuum.
DO $partitions$ BEGIN
    FOR slot IN 0..3 LOOP
        EXECUTE format('CREATE TABLE %I.history_%s PARTITION OF %1$I.history FOR VALUES IN (%2$s)
            WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_threshold = -1)', :'schema', slot);
        EXECUTE format('CREATE TABLE %I.history_range_%s PARTITION OF %1$I.history_range FOR VALUES IN (%2$s)
            WITH (autovacuum_vacuum_insert_threshold = -1)', :'schema', slot);
        EXECUTE format('CREATE TABLE %I.history_life_%s PARTITION OF %1$I.history_life FOR VALUES IN (%2$s)
            WITH (autovacuum_vacuum_insert_threshold = -1)', :'schema', slot);
    END LOOP;
END $partitions$;

ALTER TABLE :schema.ring ADD COLUMN most bigint CONSTRAINT ring_most_valid CHECK (most > 0); -- bytes; NULL is no limit
INSERT INTO :schema.ring (name, slot, keep, most) VALUES ('history', 0, '7 days', 10737418240);

-- The tables of one slot of a ring.
CREATE FUNCTION :schema.ring_tables(ring text, slot int) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
SELECT array_agg(format('%I.%s_%s', :'schema', part, ring_tables.slot))
FROM unnest(CASE ring_tables.ring WHEN 'history' THEN ARRAY['history', 'history_range', 'history_life']
                                  ELSE ARRAY[ring_tables.ring] END) part
$$;

-- How many bytes they have, with their indexes.
CREATE FUNCTION :schema.ring_bytes(ring text, slot int) RETURNS bigint
LANGUAGE sql STABLE AS $$
SELECT sum(pg_total_relation_size(t::regclass))::bigint
FROM unnest(:schema.ring_tables(ring_bytes.ring, ring_bytes.slot)) t
$$;

-- Rotates a ring when it is due, and returns whether it did. A ring is due three times within the time that it keeps,
-- and when its slot has grown to a quarter of what the ring may have. It waits until no transaction writes ids any
-- more, and later writers wait behind it: give it a lock_timeout, and try again.
CREATE OR REPLACE FUNCTION :schema.rotate_ring(ring text) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C" := rotate_ring.ring;
    next   int;
BEGIN
    PERFORM FROM :schema.ring r WHERE r.name = wanted AND (r.since <= clock_timestamp() - r.keep / 3
        OR :schema.ring_bytes(wanted, r.slot) > r.most / 4);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(1162101826, tableoid::int) FROM :schema.ring r WHERE r.name = wanted;
    UPDATE :schema.ring r SET slot = (r.slot + 1) % 4, since = clock_timestamp()
    WHERE r.name = wanted AND (r.since <= clock_timestamp() - r.keep / 3
        OR :schema.ring_bytes(wanted, r.slot) > r.most / 4) RETURNING r.slot INTO next;
    IF next IS NULL THEN -- another session was faster
        RETURN false;
    END IF;
    EXECUTE 'TRUNCATE ' || array_to_string(:schema.ring_tables(wanted, next), ', ');
    RETURN true;
END $$;

-- What is kept of an endpoint's messages; NULL: what its program says.
ALTER TABLE :schema.endpoint_setting
    ADD COLUMN history text COLLATE "C"
        CONSTRAINT endpoint_setting_history_valid CHECK (history IN ('off', 'steps', 'states', 'bodies')),
    ADD COLUMN history_sample float8
        CONSTRAINT endpoint_setting_history_sample_valid CHECK (history_sample > 0 AND history_sample <= 1);
