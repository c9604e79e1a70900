-- What the users' programs collect beside their sagas, a row for each item. Rows are added and deleted, and never
-- updated, so pages are full.
CREATE TABLE :schema.saga_item (
    collection    text COLLATE "C" NOT NULL
        CONSTRAINT saga_item_collection_valid CHECK (collection ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    collected_for text COLLATE "C" NOT NULL -- such as the key of an instance
        CONSTRAINT saga_item_collected_for_length CHECK (octet_length(collected_for) BETWEEN 1 AND 512),
    item_key      text COLLATE "C" NOT NULL
        CONSTRAINT saga_item_key_length CHECK (octet_length(item_key) BETWEEN 1 AND 512),
    number        bigint GENERATED ALWAYS AS IDENTITY, -- the order of addition
    added         timestamptz NOT NULL DEFAULT now(), -- the beginning of the transaction that added it
    size          int NOT NULL, -- of the value in bytes: a reader knows what it asks for, and reads no value for that
    item_value    json NOT NULL,
    CONSTRAINT saga_item_pkey PRIMARY KEY (collection, collected_for, item_key)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 50000
);
CREATE INDEX saga_item_in_order ON :schema.saga_item (collection, collected_for, number);
