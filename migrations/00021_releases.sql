-- A release is one declaration of an owner, found again by the digest of its contents. Its number is given once, when a
-- program first declares it: of the releases that run, the one with the largest number decides about a manifest. A
-- release that is rolled out again has the number that it had.
CREATE TABLE :schema.manifest_release (
    number    bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT manifest_release_pkey PRIMARY KEY,
    owner     text COLLATE "C" NOT NULL,
    digest    bytea NOT NULL,  -- SHA-256
    manifests text[] NOT NULL, -- names
    sums      text[] NOT NULL, -- of the manifests, in the same order
    groups    text[] NOT NULL,
    first     timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen      timestamptz NOT NULL DEFAULT clock_timestamp(), -- when a program last entered or left
    CONSTRAINT manifest_release_unique UNIQUE (owner, digest)
);

-- A program is one process that runs a scheduler with a declaration. It runs while it renews its row in time.
CREATE TABLE :schema.manifest_program (
    id      uuid CONSTRAINT manifest_program_pkey PRIMARY KEY,
    release bigint NOT NULL CONSTRAINT manifest_program_release_fkey REFERENCES :schema.manifest_release,
    host    text NOT NULL,
    pid     int NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX manifest_program_release_idx ON :schema.manifest_program (release);

-- When a person removed the manifest: only a program that starts later brings it back. And how many of its due times
-- passed without a run, and when that was last so.
ALTER TABLE :schema.manifest ADD COLUMN removed_at timestamptz, ADD COLUMN skipped bigint NOT NULL DEFAULT 0,
    ADD COLUMN skipped_at timestamptz;
CREATE INDEX manifest_skipped_idx ON :schema.manifest (skipped_at) WHERE skipped_at IS NOT NULL;

-- Runs that ended as nobody asked for are looked for by their end.
CREATE INDEX run_timed_out_idx ON :schema.run (ended) WHERE state = 'timed_out';
CREATE INDEX run_attempt_lost_idx ON :schema.run_attempt (ended) WHERE outcome = 'lost';
