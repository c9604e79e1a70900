-- name: set_partitions
-- The router reads it, by the same name: partition_number of internal/queue.
INSERT INTO :schema.settings (name, value) VALUES ('partitions/' || $1, $2)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: forget_partitions
DELETE FROM :schema.settings WHERE name = 'partitions/' || $1;
