-- What somebody has set for an endpoint while its programs run. Each process of the endpoint reads its row now and
-- then, and whoever changes it tells them. A row that is not there says nothing: the endpoint runs with the numbers of
-- its program.
CREATE TABLE :schema.knob (
    endpoint    text COLLATE "C" CONSTRAINT knob_pkey PRIMARY KEY
        CONSTRAINT knob_endpoint_fkey REFERENCES :schema.queue (endpoint) ON DELETE CASCADE,
    paused_at   timestamptz, -- null while it runs
    reason      text NOT NULL DEFAULT '',
    -- null is the program's own
    concurrency int CONSTRAINT knob_concurrency_valid CHECK (concurrency BETWEEN 1 AND 10000)
);

-- The group of a dead letter is a short name for its endpoint, its kind and the shape of its error. It is computed when
-- the letter is written. A letter from before that is in the group 'old'.
ALTER TABLE :schema.dead_letter ADD COLUMN error_group text COLLATE "C" NOT NULL DEFAULT 'old';
CREATE INDEX dead_letter_group_idx ON :schema.dead_letter (error_group, id);

-- The retry, or the discarding, of many dead letters: those that a filter chooses, up to the last that there was when
-- the job was made. It goes on from mark, which moves in the transaction that ends the letters below it.
CREATE TABLE :schema.dead_letter_job (
    id          bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT dead_letter_job_pkey PRIMARY KEY,
    action      text COLLATE "C" NOT NULL CONSTRAINT dead_letter_job_action CHECK (action IN ('retry', 'discard')),
    state       text COLLATE "C" NOT NULL DEFAULT 'open' CONSTRAINT dead_letter_job_state CHECK (state IN ('open',
        'done', 'cancelled')),
    endpoint    text COLLATE "C" NOT NULL, -- what is empty is no condition
    kind        text COLLATE "C" NOT NULL,
    error_group text COLLATE "C" NOT NULL,
    message_id  uuid,
    died_from   timestamptz,
    died_before timestamptz,
    reason      text NOT NULL,
    rate        double precision CONSTRAINT dead_letter_job_rate CHECK (rate > 0), -- letters a second; null is no limit
    mark        bigint NOT NULL DEFAULT 0,
    last        bigint NOT NULL,
    ended       bigint NOT NULL DEFAULT 0,
    kept        bigint NOT NULL DEFAULT 0, -- they could not be retried, and are still dead letters
    error       text NOT NULL DEFAULT '',  -- why the last of them could not
    due         timestamptz NOT NULL DEFAULT clock_timestamp(), -- of the next step
    created     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What a dead letter was before somebody edited it. Edits are made by hand, so nothing removes these rows.
CREATE TABLE :schema.dead_letter_edit (
    id         bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT dead_letter_edit_pkey PRIMARY KEY,
    letter     bigint NOT NULL,
    endpoint   text COLLATE "C" NOT NULL,
    message_id uuid NOT NULL,
    sent_as    uuid NOT NULL, -- the id of the message that was sent in its place
    kind       text COLLATE "C" NOT NULL,
    header     bytea NOT NULL,
    body       bytea NOT NULL,
    reason     text NOT NULL,
    by_role    text NOT NULL DEFAULT session_user,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX dead_letter_edit_message_idx ON :schema.dead_letter_edit (message_id);
