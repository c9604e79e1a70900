-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);

-- name: turn
SELECT :schema.turn_ring($1::text);

-- name: set_keep
UPDATE :schema.ring SET keep = $2::bigint * interval '1 microsecond' WHERE name = $1;

-- name: keep_at_least
UPDATE :schema.ring SET keep = $2::bigint * interval '1 microsecond' WHERE name = $1 AND keep < $2::bigint * interval '1 microsecond';

-- name: rings
SELECT r.name, r.slot::int4, (extract(epoch FROM r.keep) * 1000000)::bigint, r.since FROM :schema.ring r ORDER BY r.name;
