-- Ids that callers chose themselves, kept for seven days so that a send repeated after an unknown outcome
-- writes nothing twice. Not partitioned: an id must be unique over all days.
CREATE TABLE :schema.sent_id (
    id  uuid CONSTRAINT sent_id_pkey PRIMARY KEY,
    sum bytea NOT NULL,
    at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sent_id_at_idx ON :schema.sent_id (at);
