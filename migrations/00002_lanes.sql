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

-- Messages that came to the head of their queue while another process had their lane. due is their turn. So a busy key
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
    last_error   text,
    CONSTRAINT parked_pkey PRIMARY KEY (queue, key, due, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
    vacuum_index_cleanup = on, vacuum_truncate = off,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000
);
