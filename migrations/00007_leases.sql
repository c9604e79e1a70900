-- One row for each thing that one process at a time may do. A row is never deleted and its epoch only grows, by one
-- with each term: a holder that slept through the end of its term finds another epoch, however often the lease has
-- changed hands meanwhile. The table is logged: one that came back empty after a crash would begin its epochs anew.
-- No column that is updated is indexed, and the pages are nearly empty, so that updates stay in their page (HOT).
CREATE TABLE :schema.lease (
    name     text COLLATE "C" CONSTRAINT lease_pkey PRIMARY KEY
        CONSTRAINT lease_name_valid CHECK (name ~ '^[a-z][a-z0-9_./-]{0,126}$'),
    holder   text COLLATE "C" CONSTRAINT lease_holder_length CHECK (octet_length(holder) BETWEEN 1 AND 300),
    epoch    bigint NOT NULL CONSTRAINT lease_epoch_positive CHECK (epoch > 0),
    acquired timestamptz NOT NULL,
    renewed  timestamptz NOT NULL,
    expires  timestamptz NOT NULL CONSTRAINT lease_expires_finite CHECK (isfinite(expires)),
    resign   bigint -- the epoch that an operator asked to end
) WITH (
    fillfactor = 10,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000
);
