-- The tables of the hand-written peers (ceiling, single, floor): a queue, the instances of the saga, and a queue
-- nobody consumes.

-- name: create
CREATE SCHEMA :schema;
CREATE TABLE :schema.queue (
    due    timestamptz NOT NULL,
    id     uuid        NOT NULL,
    kind   text        NOT NULL,
    header bytea       NOT NULL,
    body   bytea       NOT NULL,
    PRIMARY KEY (due, id)
);
CREATE TABLE :schema.sink (LIKE :schema.queue INCLUDING ALL);
-- The fill factor leaves room for the next version on the same page, so that no index is touched.
CREATE TABLE :schema.saga (
    iid     uuid   PRIMARY KEY,
    saga    text   NOT NULL,
    key     text   NOT NULL,
    version bigint NOT NULL,
    state   json   NOT NULL,
    UNIQUE (saga, key)
) WITH (fillfactor = 70);

-- name: effects
SELECT (SELECT count(*) FROM :schema.queue),
       s.sent, s.total, i.steps, i.total
  FROM (SELECT count(DISTINCT id) AS sent,
               coalesce(sum((convert_from(body, 'UTF8')::json ->> 'amount')::bigint), 0)::bigint AS total
          FROM :schema.sink) s,
       (SELECT coalesce(sum((state ->> 'steps')::bigint), 0)::bigint AS steps,
               coalesce(sum((state ->> 'total')::bigint), 0)::bigint AS total
          FROM :schema.saga) i;
