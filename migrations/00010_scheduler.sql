-- A group of manifests shares a cap on the runs that are active at a time, a priority, and a switch.
CREATE TABLE :schema.manifest_group (
    id        int GENERATED ALWAYS AS IDENTITY CONSTRAINT manifest_group_pkey PRIMARY KEY,
    name      text COLLATE "C" NOT NULL CONSTRAINT manifest_group_name_unique UNIQUE
        CONSTRAINT manifest_group_name_valid CHECK (name ~ '^[a-z][a-z0-9_./-]{0,126}$'),
    owner     text COLLATE "C" NOT NULL DEFAULT '',
    most      int CONSTRAINT manifest_group_most_valid CHECK (most BETWEEN 1 AND 1000000), -- null is no cap
    strict    boolean NOT NULL DEFAULT false,
    priority  smallint NOT NULL DEFAULT 0 CONSTRAINT manifest_group_priority_valid CHECK (priority BETWEEN 0 AND 31),
    -- what its owner declared last: a declaration that says the same again leaves alone what an operator has set
    declared  jsonb,
    paused_at timestamptz, -- null while its manifests fire
    reason    text NOT NULL DEFAULT ''
);

-- A manifest says when which message is sent. What the program declares is in definition, for Go to read; columns are
-- what SQL judges by. due is its next firing, null when no clock decides that. A manifest whose due has come is left
-- alone while it is not live, while its last scheduled run is open (run), and while a dead one waits for an
-- operator (held).
CREATE TABLE :schema.manifest (
    id          bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT manifest_pkey PRIMARY KEY,
    name        text COLLATE "C" NOT NULL CONSTRAINT manifest_name_unique UNIQUE
        CONSTRAINT manifest_name_valid CHECK (name ~ '^[a-z][a-z0-9_./-]{0,126}$'),
    owner       text COLLATE "C" NOT NULL DEFAULT '',
    version     bigint NOT NULL DEFAULT 1, -- grows with each change of the definition
    definition  jsonb NOT NULL,
    parent      text COLLATE "C", -- the manifest that it follows, or that may activate it
    follows     boolean NOT NULL DEFAULT false, -- each success of its parent makes it due
    group_id    int CONSTRAINT manifest_group_fkey REFERENCES :schema.manifest_group,
    priority    smallint NOT NULL DEFAULT 0 CONSTRAINT manifest_priority_valid CHECK (priority BETWEEN 0 AND 31),
    overlap     boolean NOT NULL DEFAULT false, -- a run does not wait for the end of the one before it
    retries     int NOT NULL DEFAULT 3 CONSTRAINT manifest_retries_valid CHECK (retries >= 0),
    retry_delay interval NOT NULL DEFAULT '5 minutes', -- before the first retry; it doubles
    retry_most  interval NOT NULL DEFAULT '1 hour',    -- and ends here
    timeout     interval, -- of a run, from its dispatch; null is none
    kind        text NOT NULL,
    body        bytea NOT NULL,
    stopped     boolean NOT NULL DEFAULT false, -- by its declaration
    paused_at   timestamptz, -- by an operator
    reason      text NOT NULL DEFAULT '',
    orphaned_at timestamptz, -- its owner no longer declares it
    live        boolean NOT NULL DEFAULT true, -- what manifest_live says of it
    due         timestamptz CONSTRAINT manifest_due_finite CHECK (isfinite(due)),
    run         uuid,
    held        uuid,
    successes   bigint NOT NULL DEFAULT 0,
    answered    bigint NOT NULL DEFAULT 0, -- its parent's successes when it last fired
    fired       timestamptz, -- when its last scheduled run was queued
    succeeded   timestamptz,
    created     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed     timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 50000
);
CREATE INDEX manifest_due_idx ON :schema.manifest (due, id) WHERE live AND run IS NULL AND held IS NULL;
CREATE INDEX manifest_follower_idx ON :schema.manifest (id) WHERE follows;
CREATE INDEX manifest_parent_idx ON :schema.manifest (parent) WHERE parent IS NOT NULL;
CREATE INDEX manifest_group_idx ON :schema.manifest (group_id) WHERE group_id IS NOT NULL;
-- Without those that were made at run time: a declaration does not look at them.
CREATE INDEX manifest_owner_idx ON :schema.manifest (owner, name) WHERE owner <> '';
CREATE INDEX manifest_orphaned_idx ON :schema.manifest (orphaned_at) WHERE orphaned_at IS NOT NULL;

-- manifest_live reports whether a manifest fires: it is stopped neither by its declaration, nor by an operator, nor
-- with its group, and is no orphan. A statement that changes one of these writes the result into live, in the
-- transaction that holds the lock of changes.
CREATE FUNCTION :schema.manifest_live(stopped boolean, paused_at timestamptz, orphaned_at timestamptz,
    group_id int) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT stopped AND paused_at IS NULL AND orphaned_at IS NULL
        AND NOT EXISTS (SELECT FROM :schema.manifest_group g WHERE g.id = manifest_live.group_id
            AND g.paused_at IS NOT NULL)
$$;

-- A run is one firing. Until it is dispatched its row is an entry of the work queue:
--
--   waiting   for the moment ready: a delay, a variance, the back-off before a retry
--   queued    to be dispatched
--   active    its message is on its way, or in hand, or the saga that it started goes on
--   dead      it failed for good, and holds its manifest until an operator retries or cancels it
--
-- and it ends as succeeded, cancelled or timed_out. due is the moment that the schedule meant.
CREATE TABLE :schema.run (
    id          uuid CONSTRAINT run_pkey PRIMARY KEY,
    manifest_id bigint NOT NULL CONSTRAINT run_manifest_fkey REFERENCES :schema.manifest ON DELETE CASCADE,
    group_id    int NOT NULL DEFAULT 0, -- 0 is no group
    origin      text COLLATE "C" NOT NULL CONSTRAINT run_origin_valid
        CHECK (origin IN ('schedule', 'dependent', 'manual', 'activation', 'backfill')),
    state       text COLLATE "C" NOT NULL CONSTRAINT run_state_valid
        CHECK (state IN ('waiting', 'queued', 'active', 'dead', 'succeeded', 'cancelled', 'timed_out')),
    due         timestamptz NOT NULL CONSTRAINT run_due_finite CHECK (isfinite(due)),
    ready       timestamptz NOT NULL CONSTRAINT run_ready_finite CHECK (isfinite(ready)),
    priority    smallint NOT NULL DEFAULT 0,
    kind        text,  -- null is that of the manifest when it is dispatched
    body        bytea,
    attempt     int NOT NULL DEFAULT 0, -- messages that were sent for it
    refused     int NOT NULL DEFAULT 0, -- times in a row that its message could not be sent
    message_id  uuid, -- of the last attempt
    deadline    timestamptz, -- of an active run
    beat        timestamptz, -- the last sign of life of a handler that gives some
    queued      timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended       timestamptz,
    error       text NOT NULL DEFAULT '',
    note        text NOT NULL DEFAULT '', -- why it was cancelled or retried
    CONSTRAINT run_message CHECK ((kind IS NULL) = (body IS NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 50000
);

-- What is always true, with and without locks: one scheduled entry of a manifest, one run of each due time,
-- and one open activation.
CREATE UNIQUE INDEX run_entry_idx ON :schema.run (manifest_id)
    WHERE state IN ('waiting', 'queued') AND attempt = 0 AND origin IN ('schedule', 'dependent');
CREATE UNIQUE INDEX run_due_idx ON :schema.run (manifest_id, due) WHERE origin IN ('schedule', 'backfill');
CREATE UNIQUE INDEX run_activation_idx ON :schema.run (manifest_id) WHERE origin = 'activation' AND ended IS NULL;
CREATE INDEX run_waiting_idx ON :schema.run (ready, id) WHERE state = 'waiting';
CREATE INDEX run_queued_idx ON :schema.run (group_id, priority DESC, ready, id) WHERE state = 'queued';
CREATE INDEX run_active_idx ON :schema.run (group_id) WHERE state = 'active';

-- never that of a group's runs
CREATE INDEX run_deadline_idx ON :schema.run (deadline, id) WHERE state = 'active' AND deadline IS NOT NULL;
CREATE INDEX run_beat_idx ON :schema.run (beat, id) WHERE state = 'active' AND beat IS NOT NULL;
CREATE INDEX run_ended_idx ON :schema.run (ended, id) WHERE ended IS NOT NULL;
CREATE INDEX run_manifest_idx ON :schema.run (manifest_id, id); -- ids are in the order of time
CREATE INDEX run_dead_idx ON :schema.run (manifest_id) WHERE state = 'dead';

-- An attempt is one message that was sent for a run. It is written when it is sent, and once more when it ends.
CREATE TABLE :schema.run_attempt (
    run        uuid NOT NULL CONSTRAINT run_attempt_run_fkey REFERENCES :schema.run ON DELETE CASCADE,
    attempt    int NOT NULL,
    message_id uuid NOT NULL,
    sent       timestamptz NOT NULL DEFAULT clock_timestamp(),
    began      timestamptz, -- of a handler that gives signs of life
    worker     text,
    ended      timestamptz,
    outcome    text COLLATE "C" CONSTRAINT run_attempt_outcome_valid
        CHECK (outcome IN ('succeeded', 'failed', 'discarded', 'cancelled', 'timed_out', 'lost')),
    error      text NOT NULL DEFAULT '',
    CONSTRAINT run_attempt_pkey PRIMARY KEY (run, attempt)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);

-- The five functions below are all that the handler of a run's message needs. A run is named by its id and the attempt
-- that its message carries; one that was cancelled, timed out or sent again meanwhile is current no longer,
-- and never will be again. Rows of queues are locked before runs, runs in the order of their ids, and after them
-- manifests in the order of theirs.

-- run_check answers for each of the attempts: 1 it is current, 0 it is not, -1 there is no such run. It holds the runs
-- of those that are current until the end of the transaction. Where worker is given, a handler begins, and its sign of
-- life is noted.
CREATE FUNCTION :schema.run_check(runs uuid[], attempts int[], worker text DEFAULT NULL) RETURNS int[]
LANGUAGE plpgsql AS $$
DECLARE
    answers int[];
BEGIN
    PERFORM FROM unnest(runs, attempts) s(run, attempt) JOIN :schema.run r ON r.id = s.run AND r.attempt = s.attempt
    WHERE r.state = 'active' ORDER BY r.id FOR NO KEY UPDATE OF r;
    SELECT coalesce(array_agg(CASE WHEN r.id IS NULL THEN -1 WHEN r.attempt = s.attempt AND r.state = 'active' THEN 1
        ELSE 0 END ORDER BY s.n), '{}')
    INTO answers FROM unnest(runs, attempts) WITH ORDINALITY s(run, attempt, n) LEFT JOIN :schema.run r ON r.id = s.run;
    IF worker IS NOT NULL THEN
        UPDATE :schema.run r SET beat = clock_timestamp()
        WHERE r.id = ANY (ARRAY(SELECT s.run FROM unnest(runs, answers) s(run, answer) WHERE s.answer = 1));
        UPDATE :schema.run_attempt a SET began = coalesce(a.began, clock_timestamp()), worker = run_check.worker
        FROM unnest(runs, attempts, answers) s(run, attempt, answer) WHERE s.answer = 1 AND a.run = s.run
            AND a.attempt = s.attempt;
    END IF;
    RETURN answers;
END $$;

-- run_beat is a sign of life of handlers. It returns which of the attempts are still current, and waits for no lock:
-- one whose run is locked counts as current.
CREATE FUNCTION :schema.run_beat(runs uuid[], attempts int[]) RETURNS int[]
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE :schema.run r SET beat = clock_timestamp() WHERE r.id = ANY (ARRAY(
        SELECT x.id FROM unnest(runs, attempts) s(run, attempt)
        JOIN :schema.run x ON x.id = s.run AND x.attempt = s.attempt
        WHERE x.state = 'active' FOR NO KEY UPDATE OF x SKIP LOCKED));
    RETURN coalesce((
        SELECT array_agg(s.n::int ORDER BY s.n) FROM unnest(runs, attempts) WITH ORDINALITY s(run, attempt, n)
        JOIN :schema.run r ON r.id = s.run AND r.attempt = s.attempt WHERE r.state = 'active'), '{}');
END $$;

-- run_rest says that no handler has the messages in hand any more and that they wait in their queues, for a retry or
-- for another worker: from here on silence is no sign of death.
CREATE FUNCTION :schema.run_rest(runs uuid[], attempts int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE :schema.run r SET beat = NULL WHERE r.id = ANY (ARRAY(
        SELECT x.id FROM unnest(runs, attempts) s(run, attempt)
        JOIN :schema.run x ON x.id = s.run AND x.attempt = s.attempt
        WHERE x.state = 'active' ORDER BY x.id FOR NO KEY UPDATE OF x));
END $$;

-- run_end ends attempts: outcomes are succeeded, failed (tried again while the manifest has retries), dead (never tried
-- again), discarded, cancelled, timed_out and lost. It tells which of them were current; others change nothing.
CREATE FUNCTION :schema.run_end(runs uuid[], attempts int[], outcomes text[], errors text[]) RETURNS int[]
LANGUAGE plpgsql AS $$
DECLARE
    now_    timestamptz := clock_timestamp();
    current int[];
    touched bigint[];
BEGIN
    WITH held AS (
        SELECT s.n, r.manifest_id FROM unnest(runs, attempts) WITH ORDINALITY s(run, attempt, n)
        JOIN :schema.run r ON r.id = s.run AND r.attempt = s.attempt
        WHERE r.state = 'active' ORDER BY r.id FOR NO KEY UPDATE OF r)
    SELECT coalesce(array_agg(h.n::int ORDER BY h.n), '{}'), array_agg(DISTINCT h.manifest_id) INTO current, touched
        FROM held h;
    IF cardinality(current) = 0 THEN
        RETURN current;
    END IF;
    PERFORM :schema.manifest_lock(touched);

    UPDATE :schema.run_attempt a
    SET ended = now_, error = errors[c], outcome = CASE outcomes[c] WHEN 'dead' THEN 'failed' ELSE outcomes[c] END
    FROM unnest(current) c WHERE a.run = runs[c] AND a.attempt = attempts[c];

    WITH ending AS (
        SELECT r.id, errors[c] AS error, m.retry_delay, m.retry_most, CASE
            WHEN outcomes[c] IN ('succeeded', 'timed_out', 'cancelled') THEN outcomes[c]
            WHEN outcomes[c] = 'discarded' THEN 'cancelled'
            WHEN outcomes[c] IN ('failed', 'lost') AND r.attempt <= m.retries THEN 'waiting'
            ELSE 'dead' END AS state
        FROM unnest(current) c JOIN :schema.run r ON r.id = runs[c] JOIN :schema.manifest m ON m.id = r.manifest_id)
    UPDATE :schema.run r
    SET state = e.state, error = e.error, beat = NULL, deadline = NULL,
        ended = CASE WHEN e.state NOT IN ('waiting', 'dead') THEN now_ END,
        ready = CASE WHEN e.state = 'waiting' THEN now_ + least(e.retry_delay * power(2, least(r.attempt - 1, 20)),
            e.retry_most) ELSE r.ready END
    FROM ending e WHERE r.id = e.id;

    PERFORM :schema.run_left(ARRAY(SELECT runs[c] FROM unnest(current) c));
    RETURN current;
END $$;

-- manifest_lock locks manifests together with those that follow them, in the order of their ids.
CREATE FUNCTION :schema.manifest_lock(manifests bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM :schema.manifest m WHERE m.id = ANY (ARRAY(
        SELECT unnest(manifests)
        UNION SELECT f.id FROM :schema.manifest p JOIN :schema.manifest f ON f.parent = p.name AND f.follows
            WHERE p.id = ANY (manifests)))
    ORDER BY m.id FOR NO KEY UPDATE;
END $$;

-- run_left tells manifests what became of their runs: an end frees its manifest, a death holds it, a success makes
-- those due that follow it, for the moment that the run was due. The caller has locked and changed the runs, and called
-- manifest_lock.
CREATE FUNCTION :schema.run_left(runs uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH said AS (
        SELECT r.manifest_id, count(*) FILTER (WHERE r.state = 'succeeded') AS successes,
            array_agg(r.id) FILTER (WHERE r.state NOT IN ('waiting', 'queued')) AS gone,
            (array_agg(r.id) FILTER (WHERE r.state = 'dead'))[1] AS dead
        FROM :schema.run r WHERE r.id = ANY (runs) GROUP BY r.manifest_id)
    UPDATE :schema.manifest m
    SET run = CASE WHEN m.run = ANY (s.gone) THEN NULL ELSE m.run END,
        held = CASE WHEN s.dead IS NOT NULL THEN s.dead
            WHEN m.held = ANY (runs) THEN (SELECT d.id FROM :schema.run d WHERE d.manifest_id = m.id
                AND d.state = 'dead' LIMIT 1)
            ELSE m.held END,
        successes = m.successes + s.successes,
        succeeded = CASE WHEN s.successes > 0 THEN clock_timestamp() ELSE m.succeeded END
    FROM said s WHERE m.id = s.manifest_id;

    UPDATE :schema.manifest f
    SET due = greatest(f.due, least(won.due, clock_timestamp()))
    FROM (SELECT m.name, max(r.due) AS due FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id
          WHERE r.id = ANY (runs) AND r.state = 'succeeded' GROUP BY m.name) won
    WHERE f.parent = won.name AND f.follows;
    IF FOUND THEN
        PERFORM :schema.nudge(:schema.channel(), 'evaluate');
    END IF;
END $$;
