-- No unique constraint, so that a duplicate effect is a second row.
CREATE TABLE IF NOT EXISTS effect (manifest text NOT NULL, due timestamptz NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
