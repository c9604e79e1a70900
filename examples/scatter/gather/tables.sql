-- The program's own table. It has no constraint that keeps a second row out: check.sql must be able to see it.
CREATE TABLE IF NOT EXISTS result (
    run     text NOT NULL,
    replies int NOT NULL,
    sum     bigint NOT NULL,
    squares bigint NOT NULL
);
