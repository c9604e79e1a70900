-- What somebody has set for an endpoint while its programs run. Each process of the endpoint reads its row now and then,
-- and whoever changes it tells them. A row that is not there says nothing: the endpoint runs with the numbers of its program.
CREATE TABLE :schema.knob (
    endpoint    text COLLATE "C" CONSTRAINT knob_pkey PRIMARY KEY
        CONSTRAINT knob_endpoint_fkey REFERENCES :schema.queue (endpoint) ON DELETE CASCADE,
    paused_at   timestamptz, -- null while it runs
    reason      text NOT NULL DEFAULT '',
    concurrency int CONSTRAINT knob_concurrency_valid CHECK (concurrency BETWEEN 1 AND 10000) -- null is the program's own
);
