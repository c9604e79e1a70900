-- A version is a number from the table's own sequence: a record that is deleted and created again has a version that
-- no reader of the old record has.

-- name: record_get
SELECT r.key, r.version, r.changed, r.value FROM :schema.record r WHERE r.collection = $1 AND r.key = $2;

-- name: record_create
INSERT INTO :schema.record AS r (collection, key, value) VALUES ($1, $2, $3::json)
ON CONFLICT ON CONSTRAINT record_pkey DO NOTHING
RETURNING r.key, r.version, r.changed, r.value;

-- name: record_update
UPDATE :schema.record r SET version = DEFAULT, changed = now(), value = $3::json
WHERE r.collection = $1 AND r.key = $2 AND r.version = $4
RETURNING r.key, r.version, r.changed, r.value;

-- name: record_put
INSERT INTO :schema.record AS r (collection, key, value) VALUES ($1, $2, $3::json)
ON CONFLICT ON CONSTRAINT record_pkey DO UPDATE SET version = DEFAULT, changed = now(), value = excluded.value
RETURNING r.key, r.version, r.changed, r.value;

-- name: record_delete
DELETE FROM :schema.record r WHERE r.collection = $1 AND r.key = $2 AND r.version = $3
RETURNING r.key, r.version, r.changed, r.value;

-- name: record_list
SELECT r.key, r.version, r.changed, r.value FROM :schema.record r
WHERE r.collection = $1 AND r.key > $2
ORDER BY r.key LIMIT $3;
