-- The queue of watermillsql. The statements that take, insert and delete are given to watermill-sql by our adapters.

-- name: queues
CREATE TABLE :schema.queue (
    "offset" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid     uuid  NOT NULL,
    payload  bytea NOT NULL,
    metadata bytea NOT NULL,
    key      text  -- of the instance, where the message has one
);
CREATE TABLE :schema.sink (LIKE :schema.queue INCLUDING ALL);

-- name: take
-- A batch is handled in the order of the instances, so that two subscribers that lock the same ones cannot deadlock.
SELECT "offset", uuid::text, payload, metadata
  FROM (SELECT "offset", uuid, payload, metadata, key
          FROM :schema.queue
         ORDER BY "offset"
         LIMIT $1
           FOR UPDATE SKIP LOCKED) taken
 ORDER BY key, "offset"

-- name: insert
INSERT INTO :schema.:topic (uuid, payload, metadata) VALUES ($1, $2, $3)

-- name: ack
DELETE FROM :schema.queue WHERE "offset" = ANY ($1::bigint[])

-- name: effects
SELECT (SELECT count(*) FROM :schema.queue),
       s.sent, s.total, i.steps, i.total
  FROM (SELECT count(DISTINCT uuid) AS sent,
               coalesce(sum((convert_from(payload, 'UTF8')::json ->> 'amount')::bigint), 0)::bigint AS total
          FROM :schema.sink) s,
       (SELECT coalesce(sum((state ->> 'steps')::bigint), 0)::bigint AS steps,
               coalesce(sum((state ->> 'total')::bigint), 0)::bigint AS total
          FROM :schema.saga) i;
