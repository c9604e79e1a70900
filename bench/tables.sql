-- The tables of the hand-written peers (ceiling, single, floor): a queue, the instances of the saga, and a queue
-- without a consumer. Peers with a queue of their own need only the instances.

-- name: create
CREATE SCHEMA :schema;
-- The fill factor leaves room for the next version on the same page, so that no index is touched.
CREATE TABLE :schema.saga (
    iid     uuid   PRIMARY KEY,
    saga    text   NOT NULL,
    key     text   NOT NULL,
    version bigint NOT NULL,
    state   json   NOT NULL,
    UNIQUE (saga, key)
) WITH (fillfactor = 70);

-- name: queues
CREATE TABLE :schema.queue (
    due    timestamptz NOT NULL,
    id     uuid        NOT NULL,
    kind   text        NOT NULL,
    header bytea       NOT NULL,
    body   bytea       NOT NULL,
    PRIMARY KEY (due, id)
);
CREATE TABLE :schema.sink (LIKE :schema.queue INCLUDING ALL);

-- name: fill
-- The messages $1 to $2, with ascending due times from 2020 on, or from tomorrow on if $3. Made in the server, since
-- ten million take a minute here and several by COPY.
INSERT INTO :schema.:queue (due, id, kind, header, body)
SELECT CASE WHEN $3::boolean THEN now() + interval '1 day' + m.seq * interval '1 millisecond'
            ELSE timestamptz '2020-01-01 00:00:00+00' + m.seq * interval '1 microsecond' END,
       m.id, 'order.charge',
       convert_to(format('{"correlation":"%s","conversation":"%s"}', m.id, m.id), 'UTF8'),
       convert_to(format(
           '{"order":"order-%s","seq":%s,"amount":%s,"customer":"customer-%s","note":"second instalment"}',
                         lpad(m.instance, 6, '0'), m.seq, m.seq % 97 + 1, lpad(m.instance, 4, '0')), 'UTF8')
  FROM (SELECT s AS seq, gen_random_uuid() AS id, ((hashint8(s) & 2147483647) % 10000)::text AS instance
          FROM generate_series($1::bigint, $2::bigint) s) m

-- name: load
-- Of the peers that lock one instance for each message.
SELECT iid, state FROM :schema.saga WHERE saga = 'order' AND key = $1 FOR NO KEY UPDATE

-- name: save
UPDATE :schema.saga SET version = version + 1, state = $2 WHERE iid = $1

-- name: effects
SELECT (SELECT count(*) FROM :schema.queue),
       s.sent, s.total, i.steps, i.total
  FROM (SELECT count(DISTINCT id) AS sent,
               coalesce(sum((convert_from(body, 'UTF8')::json ->> 'amount')::bigint), 0)::bigint AS total
          FROM :schema.sink) s,
       (SELECT coalesce(sum((state ->> 'steps')::bigint), 0)::bigint AS steps,
               coalesce(sum((state ->> 'total')::bigint), 0)::bigint AS total
          FROM :schema.saga) i;
