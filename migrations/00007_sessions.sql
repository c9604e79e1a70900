-- A session is one process that runs endpoints. Between heartbeats it costs nothing; a row that did not end and whose
-- advisory lock is free, or whose time is over, tells of a process that died. queues are those that it ran.
CREATE TABLE :schema.session (
    id      uuid CONSTRAINT session_pkey PRIMARY KEY,
    host    text NOT NULL,
    pid     int NOT NULL,
    queues  int[] NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    renewed timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL,
    locked  boolean NOT NULL, -- the process holds the advisory lock of this row as long as it lives
    ended   timestamptz,
    died    boolean NOT NULL DEFAULT false,
    CONSTRAINT session_died_ended CHECK (ended IS NOT NULL OR NOT died)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX session_live_idx ON :schema.session (id) WHERE ended IS NULL;
CREATE INDEX session_ended_idx ON :schema.session (ended) WHERE ended IS NOT NULL;

-- The messages that careful processes have in hand, and those that processes died with. It is written in
-- careful mode only. The key is that of the message's row, which one transaction at a time has in hand.
CREATE TABLE :schema.crash_ledger (
    queue   int NOT NULL,
    due     timestamptz NOT NULL,
    id      uuid NOT NULL,
    deaths  int NOT NULL, -- processes that died while they had it in hand
    alone   int NOT NULL, -- those of them that had nothing else in hand
    session uuid,         -- who has it in hand now, or had when it died
    solo    boolean NOT NULL DEFAULT false, -- and has nothing else
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT crash_ledger_pkey PRIMARY KEY (queue, due, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
