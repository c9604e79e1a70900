-- name: set_partitions
-- The router reads the number by the same name: partition_number of internal/store/queue.
INSERT INTO :schema.settings (name, value) VALUES ('partitions/' || $1, $2)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: forget_partitions
DELETE FROM :schema.settings WHERE name = 'partitions/' || $1;

-- name: lock_number
-- Held from the last check for processes to the commit of a new number. An advisory lock, since a program's role may
-- not lock the row.
SELECT pg_advisory_xact_lock(hashtextextended('partitions/' || $1, tableoid::bigint))
FROM :schema.subscription_generation;

-- name: share_number
SELECT pg_advisory_xact_lock_shared(hashtextextended('partitions/' || $1, tableoid::bigint))
FROM :schema.subscription_generation;
