-- A session is one process that runs endpoints; queues are those of its endpoints. A process has crashed when its row
-- has not ended and its time is over, or the advisory lock that it held is free.
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

-- The in-flight journal: one row for each batch of an endpoint in quarantine. The batch inserts the row before it runs
-- anything, and deletes it with the messages that it took. A row whose session has crashed names the messages that were
-- in hand. This table and the next are unlogged: both must survive the crash of a process. After a crash of the server
-- they would blame the wrong messages, so Postgres empties them then. The arrays are never moved to TOAST.
CREATE UNLOGGED TABLE :schema.in_flight (
    id      uuid CONSTRAINT in_flight_pkey PRIMARY KEY,
    queue   int NOT NULL,
    session uuid NOT NULL,
    backend int NOT NULL DEFAULT pg_backend_pid(), -- the server process that runs it
    alone   boolean NOT NULL, -- a single message, and nothing else in hand in the process
    due     timestamptz[] NOT NULL,
    ids     uuid[] NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE :schema.in_flight ALTER COLUMN due SET STORAGE PLAIN, ALTER COLUMN ids SET STORAGE PLAIN;
CREATE INDEX in_flight_queue_idx ON :schema.in_flight (queue);

-- Messages that were in hand when a process crashed. A row is deleted when its message has been handled or has become a
-- dead letter. due and id are the key of the message's row.
CREATE UNLOGGED TABLE :schema.suspect (
    queue  int NOT NULL,
    due    timestamptz NOT NULL,
    id     uuid NOT NULL,
    deaths int NOT NULL, -- processes that crashed with the message in hand
    alone  int NOT NULL, -- processes that crashed with no other message in hand
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT suspect_pkey PRIMARY KEY (queue, due, id)
);

-- session_died reports whether the process of a session has crashed. A session without a row crashed long ago, because
-- a process that runs keeps its row. Where look is false the caller cannot trust its own connection, so that only what
-- other processes have recorded counts.
CREATE FUNCTION :schema.session_died(session uuid, look boolean) RETURNS boolean
LANGUAGE sql AS $$
    SELECT CASE WHEN s.id IS NULL OR s.died THEN true
                WHEN s.ended IS NOT NULL OR NOT look THEN false
                WHEN s.expires < clock_timestamp() THEN true
                WHEN s.locked THEN pg_try_advisory_xact_lock_shared(hashtextextended(s.id::text, s.tableoid::bigint))
                ELSE false END
    FROM (SELECT) one LEFT JOIN :schema.session s ON s.id = session_died.session
$$;
