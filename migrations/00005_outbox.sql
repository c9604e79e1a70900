-- Ids that callers chose themselves, kept for seven days so that a send repeated after an unknown outcome
-- writes nothing twice. Not partitioned: an id must be unique over all days.
CREATE TABLE :schema.sent_id (
    id  uuid CONSTRAINT sent_id_pkey PRIMARY KEY,
    sum bytea NOT NULL,
    at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sent_id_at_idx ON :schema.sent_id (at);

-- What is kept for a time and then forgotten all at once: ids of messages that came from other systems (inbox), and
-- copies of messages that were relayed to them (outbox). Each is a ring of four slots, a partition each. All writers
-- write into one slot; a rotation empties the oldest, and writers go on there. So no row is deleted, no role needs the
-- right to create or drop a table, and what is written is kept for three rotations at least.
CREATE TABLE :schema.ring (
    name  text COLLATE "C" CONSTRAINT ring_pkey PRIMARY KEY,
    slot  smallint NOT NULL CONSTRAINT ring_slot_valid CHECK (slot BETWEEN 0 AND 3),
    keep  interval NOT NULL CONSTRAINT ring_keep_valid CHECK (keep >= interval '1 minute'),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO :schema.ring (name, slot, keep) VALUES ('inbox', 0, '7 days'), ('outbox', 0, '7 days');

-- sum is the beginning of a digest of the message, null where its content was not known.
CREATE TABLE :schema.inbox (
    slot   smallint NOT NULL,
    source text COLLATE "C" NOT NULL,
    id     uuid NOT NULL,
    sum    bigint,
    at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT inbox_pkey PRIMARY KEY (source, id, slot)
) PARTITION BY LIST (slot);
CREATE TABLE :schema.inbox_0 PARTITION OF :schema.inbox FOR
    VALUES IN (0) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.inbox_1 PARTITION OF :schema.inbox FOR
    VALUES IN (1) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.inbox_2 PARTITION OF :schema.inbox FOR
    VALUES IN (2) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.inbox_3 PARTITION OF :schema.inbox FOR
    VALUES IN (3) WITH (autovacuum_vacuum_insert_threshold = -1);

-- One message may be relayed more than once, so nothing here is unique.
CREATE TABLE :schema.outbox (
    slot     smallint NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    relayed  timestamptz NOT NULL,
    id       uuid NOT NULL,
    sent     timestamptz,
    kind     text COLLATE "C" NOT NULL,
    header   bytea NOT NULL,
    body     bytea NOT NULL
) PARTITION BY LIST (slot);
CREATE INDEX outbox_relayed_idx ON :schema.outbox (endpoint, relayed, id);
CREATE INDEX outbox_id_idx ON :schema.outbox (id);
CREATE TABLE :schema.outbox_0 PARTITION OF :schema.outbox FOR
    VALUES IN (0) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.outbox_1 PARTITION OF :schema.outbox FOR
    VALUES IN (1) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.outbox_2 PARTITION OF :schema.outbox FOR
    VALUES IN (2) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE :schema.outbox_3 PARTITION OF :schema.outbox FOR
    VALUES IN (3) WITH (autovacuum_vacuum_insert_threshold = -1);

-- Rotates a ring when it is due, which is three times within the time that it keeps, and returns whether it did. It
-- waits until no transaction writes ids any more, and later writers wait behind it: give it a lock_timeout, and try
-- again.
CREATE FUNCTION :schema.rotate_ring(ring text) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C" := rotate_ring.ring;
    next   int;
BEGIN
    PERFORM FROM :schema.ring r WHERE r.name = wanted AND r.since <= clock_timestamp() - r.keep / 3;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(1162101826, tableoid::int) FROM :schema.ring r WHERE r.name = wanted;
    UPDATE :schema.ring r SET slot = (r.slot + 1) % 4, since = clock_timestamp()
    WHERE r.name = wanted AND r.since <= clock_timestamp() - r.keep / 3 RETURNING r.slot INTO next;
    IF next IS NULL THEN -- another session was faster
        RETURN false;
    END IF;
    EXECUTE format('TRUNCATE %I.%I', :'schema', wanted || '_' || next);
    RETURN true;
END $$;

-- The id under which a message is known here: its own where that is a UUID, else a UUIDv8 made of where it came from
-- and what it was called there.
CREATE FUNCTION :schema.inbox_id(source text, id text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    digest bytea;
BEGIN
    IF inbox_id.id COLLATE "C" ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
        AND inbox_id.id <> '00000000-0000-0000-0000-000000000000' THEN
        RETURN inbox_id.id::uuid;
    END IF;
    digest := substring(sha256(convert_to(inbox_id.source || E'\n' || inbox_id.id, 'UTF8')) FROM 1 FOR 16);
    digest := set_byte(digest, 6, (get_byte(digest, 6) & 15) | 128);
    RETURN encode(set_byte(digest, 8, (get_byte(digest, 8) & 63) | 128), 'hex')::uuid;
END $$;

-- received remembers, in the caller's transaction, that the message id from source has come, and is false when it had
-- come before: then do nothing. It waits while another transaction has the same id in hand.
--
--   SELECT edda.received('payments', '0198c0de-0000-7000-8000-000000000001');
--
-- The shared lock keeps the ring from turning until the transaction ends, so the slot that is read after it stays the
-- one. Where the whole transaction has one snapshot, and the ring turned after it, locking the row makes Postgres
-- refuse it with 40001.
CREATE FUNCTION :schema.received(source text, id text) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    place   text COLLATE "C" := received.source;
    known   uuid;
    current int;
BEGIN
    IF (place ~ '^[^[:cntrl:]]+$' AND octet_length(place) <= 255) IS NOT TRUE THEN
        RAISE EXCEPTION 'source must be a text of 1 to 255 bytes without control characters' USING ERRCODE = '22023';
    ELSIF (received.id <> '') IS NOT TRUE THEN
        RAISE EXCEPTION 'id must not be empty: a message without one cannot be told from another'
            USING ERRCODE = '22023';
    END IF;
    known := :schema.inbox_id(place, received.id);
    PERFORM pg_advisory_xact_lock_shared(1162101826, tableoid::int) FROM :schema.ring r WHERE r.name = 'inbox';
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM :schema.ring r WHERE r.name = 'inbox' FOR SHARE;
    END IF;
    SELECT r.slot INTO STRICT current FROM :schema.ring r WHERE r.name = 'inbox';
    IF current <> 0 AND EXISTS (SELECT FROM :schema.inbox_0 x WHERE x.source = place AND x.id = known)
        OR current <> 1 AND EXISTS (SELECT FROM :schema.inbox_1 x WHERE x.source = place AND x.id = known)
        OR current <> 2 AND EXISTS (SELECT FROM :schema.inbox_2 x WHERE x.source = place AND x.id = known)
        OR current <> 3 AND EXISTS (SELECT FROM :schema.inbox_3 x WHERE x.source = place AND x.id = known) THEN
        RETURN false;
    END IF;
    INSERT INTO :schema.inbox (slot, source, id) VALUES (current, place, known) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
