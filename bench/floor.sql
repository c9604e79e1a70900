-- The statements of floor: the least cost of a message.

-- name: insert
INSERT INTO :schema.queue (due, id, kind, header, body) VALUES (now(), $1, $2, $3, $4)

-- name: delete
-- By ctid, because a DELETE has no LIMIT.
DELETE FROM :schema.queue
 WHERE ctid = (SELECT ctid FROM :schema.queue WHERE due <= now() ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING body
