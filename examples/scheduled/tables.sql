-- No unique constraint: what is done twice must be seen.
CREATE TABLE IF NOT EXISTS effect (manifest text NOT NULL, due timestamptz NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
