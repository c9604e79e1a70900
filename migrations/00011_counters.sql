-- What the sagas of each endpoint did, hour by hour: for tools that advise, and for nothing that must be exact. Each
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
