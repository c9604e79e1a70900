-- The statements of single: one transaction per message.

-- name: take
SELECT ctid, header, body
  FROM :schema.queue
 WHERE due <= now()
 ORDER BY due, id
 LIMIT 1
   FOR UPDATE SKIP LOCKED

-- name: load-pessimistic
SELECT iid, version, state FROM :schema.saga WHERE saga = 'order' AND key = $1 FOR NO KEY UPDATE

-- name: load-optimistic
SELECT iid, version, state FROM :schema.saga WHERE saga = 'order' AND key = $1

-- name: write
-- One statement, so that the message is consumed and the next one sent only if the version has not changed since we
-- read it: otherwise the COMMIT behind it in the pipeline would lose the change and consume the message.
WITH saved AS (
    UPDATE :schema.saga SET version = version + 1, state = $3 WHERE iid = $1 AND version = $2 RETURNING 1
), sent AS (
    INSERT INTO :schema.sink (due, id, kind, header, body)
    SELECT now(), $4, 'order.charged', $5, $6 FROM saved
)
DELETE FROM :schema.queue WHERE ctid = $7 AND EXISTS (SELECT FROM saved)
