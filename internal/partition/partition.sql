-- name: set_partitions
INSERT INTO :schema.settings (name, value) VALUES ('partitions/' || $1, $2)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: forget_partitions
DELETE FROM :schema.settings WHERE name = 'partitions/' || $1;
