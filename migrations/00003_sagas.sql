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
    changed       timestamptz NOT NULL DEFAULT now(), -- by the last save: the beginning of its transaction
    CONSTRAINT saga_key_unique UNIQUE (saga, key)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 50000
);

-- What the sagas of each endpoint did, hour by hour: for people who look, and for nothing that must be exact. Each
-- process adds to it every ten seconds or so; what it had not added when it crashed is lost. A row whose saga is ''
-- is for the handlers of the endpoint that are no saga. The hour comes first in the key, because it is what is read
-- and what is deleted by. Durations are in microseconds, and added up.
CREATE TABLE :schema.saga_counter (
    hour           timestamptz NOT NULL,
    endpoint       text COLLATE "C" NOT NULL,
    saga           text COLLATE "C" NOT NULL,
    store          text COLLATE "C" NOT NULL, -- this and the next two as the process has them that was here last
    concurrency    int NOT NULL,
    batch_max      int NOT NULL,
    first          timestamptz NOT NULL,
    last           timestamptz NOT NULL,
    taken          bigint NOT NULL,
    steps          bigint NOT NULL,
    retries        bigint NOT NULL,
    discarded      bigint NOT NULL,
    dead           bigint NOT NULL,
    dead_conflicts bigint NOT NULL,
    conflicts      bigint NOT NULL,
    busy           bigint NOT NULL,
    queued         bigint NOT NULL,
    batches        bigint NOT NULL,
    instances      bigint NOT NULL,
    writes         bigint NOT NULL,
    starts         bigint NOT NULL,
    lost           bigint NOT NULL,
    lost_starts    bigint NOT NULL,
    state_bytes    bigint NOT NULL,
    waits          bigint NOT NULL,
    wait_timeouts  bigint NOT NULL,
    turns          bigint NOT NULL,
    handler_us     bigint NOT NULL,
    critical_us    bigint NOT NULL,
    batch_us       bigint NOT NULL,
    wait_us        bigint NOT NULL,
    turn_us        bigint NOT NULL,
    CONSTRAINT saga_counter_pkey PRIMARY KEY (hour, endpoint, saga)
) WITH (fillfactor = 50);
