-- The counts, which River does not provide.

-- name: effects
-- River keeps completed jobs for a day. The other jobs count as left. Every job in the queue of the sink must still
-- be available, so the query distinguishes them by their content and not by River's own number.
SELECT (SELECT count(*) FROM :schema.river_job WHERE queue = 'work' AND state <> 'completed'),
       s.sent, s.total, i.steps, i.total
  FROM (SELECT count(DISTINCT args ->> 'seq') AS sent, coalesce(sum((args ->> 'amount')::bigint), 0)::bigint AS total
          FROM :schema.river_job WHERE queue = 'sink' AND state = 'available') s,
       (SELECT coalesce(sum((state ->> 'steps')::bigint), 0)::bigint AS steps,
               coalesce(sum((state ->> 'total')::bigint), 0)::bigint AS total
          FROM :schema.saga) i;
