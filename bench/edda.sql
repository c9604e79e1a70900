-- name: empty
-- A message is here until the transaction that handled it has committed.
SELECT NOT EXISTS (SELECT FROM :schema.queue_1);

-- name: effects
-- Dead letters and discarded messages count as left. A good run has 0 of them.
SELECT (SELECT count(*) FROM :schema.queue_1) + (SELECT count(*) FROM :schema.dead_letter) + (SELECT count(*)
    FROM :schema.discarded),
       s.sent, s.total, i.steps, i.total
  FROM (SELECT count(DISTINCT id) AS sent,
               coalesce(sum((convert_from(body, 'UTF8')::json ->> 'amount')::bigint), 0)::bigint AS total
          FROM :schema.queue_2) s,
       (SELECT coalesce(sum((state ->> 'steps')::bigint), 0)::bigint AS steps,
               coalesce(sum((state ->> 'total')::bigint), 0)::bigint AS total
          FROM :schema.saga) i;

-- name: drain
TRUNCATE :schema.queue_1;

-- name: fill_inbox
-- Ids of the days before: version 7, or with no order.
INSERT INTO :schema.inbox (slot, source, id, sum)
SELECT $1::int, $2::text,
       CASE WHEN $4::boolean THEN gen_random_uuid()
            ELSE (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 400000000 * $1::int + n), 12,
                '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14, 19))::uuid END,
       n
  FROM generate_series(1, $3::int) n;
