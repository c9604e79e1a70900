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

-- What careful processes have in hand: one row for each batch, written before it runs and deleted with what it took.
-- One whose session died tells which messages were there. Not logged, as the next one: both must survive the death of a
-- process, and after that of the server they would blame the wrong ones. Nothing of it is moved out of line.
CREATE UNLOGGED TABLE :schema.crash_batch (
    id      uuid CONSTRAINT crash_batch_pkey PRIMARY KEY,
    queue   int NOT NULL,
    session uuid NOT NULL,
    backend int NOT NULL DEFAULT pg_backend_pid(), -- the server process that runs it
    alone   boolean NOT NULL, -- a single message, and nothing else in hand in the process
    due     timestamptz[] NOT NULL,
    ids     uuid[] NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE :schema.crash_batch ALTER COLUMN due SET STORAGE PLAIN, ALTER COLUMN ids SET STORAGE PLAIN;
CREATE INDEX crash_batch_queue_idx ON :schema.crash_batch (queue);

-- The messages that processes died with, until they meet their fate. The key is that of the message's row.
CREATE UNLOGGED TABLE :schema.crash_ledger (
    queue  int NOT NULL,
    due    timestamptz NOT NULL,
    id     uuid NOT NULL,
    deaths int NOT NULL, -- processes that died while they had it in hand
    alone  int NOT NULL, -- those of them that had nothing else in hand
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT crash_ledger_pkey PRIMARY KEY (queue, due, id)
);

-- Reports whether the process of a session died. A session that is not there any more has been dead for long: a living
-- one is always there. Without look the caller doubts its own connection, and only what others saw counts.
CREATE FUNCTION :schema.session_died(session uuid, look boolean) RETURNS boolean
LANGUAGE sql AS $$
    SELECT CASE WHEN s.id IS NULL OR s.died THEN true
                WHEN s.ended IS NOT NULL OR NOT look THEN false
                WHEN s.expires < clock_timestamp() THEN true
                WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.tableoid::bigint))
                ELSE false END
    FROM (SELECT) one LEFT JOIN :schema.session s ON s.id = session_died.session
$$;
