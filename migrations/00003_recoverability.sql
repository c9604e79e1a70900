-- Messages that nobody will try again by himself. The row has a key of its own, since one message may
-- die more than once, and no constraint that the data of a message could break.
CREATE TABLE :schema.dead_letter (
    id           bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT dead_letter_pkey PRIMARY KEY,
    endpoint     text COLLATE "C" NOT NULL,
    message_id   uuid NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    header       bytea NOT NULL,
    body         bytea NOT NULL,
    attempts     int NOT NULL,
    conflicts    int NOT NULL,
    reason       text NOT NULL,
    error        text NOT NULL,
    sent         timestamptz,
    first_failed timestamptz,
    died         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX dead_letter_message_idx ON :schema.dead_letter (message_id);
CREATE INDEX dead_letter_endpoint_idx ON :schema.dead_letter (endpoint, id);

-- Messages that were consumed without effect, and why.
CREATE TABLE :schema.discarded (
    id         bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT discarded_pkey PRIMARY KEY,
    endpoint   text COLLATE "C" NOT NULL,
    message_id uuid NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    saga       text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    reason     text NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX discarded_at_idx ON :schema.discarded (at);
