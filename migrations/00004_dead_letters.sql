-- Dead letters: messages that are not tried again until an operator acts. The row has a key of its own, since one
-- message may become a dead letter more than once, and no constraint that the data of a message could break.
--
-- error_group is a short name for the endpoint, the kind and the shape of the error. It is computed when the letter is
-- written. A row that is inserted by hand, without one, is in the group 'old'.
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
    died         timestamptz NOT NULL DEFAULT clock_timestamp(),
    error_group  text COLLATE "C" NOT NULL DEFAULT 'old'
);
CREATE INDEX dead_letter_message_idx ON :schema.dead_letter (message_id);
CREATE INDEX dead_letter_endpoint_idx ON :schema.dead_letter (endpoint, id);
CREATE INDEX dead_letter_group_idx ON :schema.dead_letter (error_group, id);

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

-- What a dead letter was before an edit. Edits are made by hand, so nothing removes these rows.
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
