-- One row per running instance. Identity is (iid, version): a key may live, end, and live again.
-- No column that an index covers ever changes, so that updates stay in their page (HOT).
CREATE TABLE :schema.saga (
    iid           uuid CONSTRAINT saga_pkey PRIMARY KEY,
    saga          text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL CONSTRAINT saga_key_length CHECK (octet_length(key) BETWEEN 1 AND 512),
    version       bigint NOT NULL,
    state_version int NOT NULL,
    state         json NOT NULL,
    timeouts      json,
    originator    json,
    started       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT saga_key_unique UNIQUE (saga, key)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 50000
);
