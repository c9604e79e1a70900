-- The statements of the ceiling. Every one reaches its rows by index probe or ctid. There is no check of versions or
-- row counts: nothing else works on these tables, and the ceiling shows the cost of these checks.

-- name: take
-- The cursor ($1, $2) is the last message this process took: the scan skips the messages that it took already.
SELECT ctid, due, id, kind, header, body
  FROM :schema.queue
 WHERE (due, id) > ($1, $2) AND due <= now()
 ORDER BY due, id
 LIMIT $3
   FOR UPDATE SKIP LOCKED

-- name: load-skip
-- The LATERAL cannot be flattened, hence one probe of the unique index per key. Busy instances are left out.
SELECT k.ord, s.ctid, s.state
  FROM unnest($1::text[]) WITH ORDINALITY k(key, ord)
 CROSS JOIN LATERAL (SELECT ctid, state FROM :schema.saga WHERE saga = 'order' AND key = k.key
                        FOR NO KEY UPDATE SKIP LOCKED) s

-- name: load-wait
-- For one instance only, so that waiting cannot deadlock.
SELECT k.ord, s.ctid, s.state
  FROM unnest($1::text[]) WITH ORDINALITY k(key, ord)
 CROSS JOIN LATERAL (SELECT ctid, state FROM :schema.saga WHERE saga = 'order' AND key = k.key
                        FOR NO KEY UPDATE) s

-- name: save
UPDATE :schema.saga s
   SET version = s.version + 1, state = u.state
  FROM unnest($1::tid[], $2::json[]) u(tid, state)
 WHERE s.ctid = u.tid

-- name: send
INSERT INTO :schema.sink (due, id, kind, header, body)
SELECT now(), o.id, 'order.charged', o.header, o.body
  FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) o(id, header, body)

-- name: delete
DELETE FROM :schema.queue WHERE ctid = ANY ($1::tid[])
