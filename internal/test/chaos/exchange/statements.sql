-- name: create
CREATE TABLE chaos.cursor (next int NOT NULL, stopped bool NOT NULL);
INSERT INTO chaos.cursor VALUES (0, false);

-- name: told
INSERT INTO chaos.told (key, n) SELECT 'number', n FROM generate_series(0, $1::int - 1) n;

-- name: ahead
SELECT next - (SELECT count(*) FROM chaos.effect), stopped FROM chaos.cursor;

-- name: lock_cursor
SELECT next, stopped FROM chaos.cursor FOR UPDATE;

-- name: stop
UPDATE chaos.cursor SET stopped = true RETURNING next;

-- name: move_cursor
UPDATE chaos.cursor SET next = $1;

-- name: receive
INSERT INTO chaos.effect (key, n) VALUES ('number', $1);

-- name: received
SELECT count(*) FROM chaos.effect;

-- name: check_counts
WITH seen AS (
    SELECT (SELECT next FROM chaos.cursor) AS published, (SELECT sum(n) FROM chaos.told) AS sum,
           (SELECT coalesce(sum((state ->> 'Count')::int), 0) FROM :schema.saga) AS counted,
           (SELECT coalesce(sum((state ->> 'Sum')::bigint), 0) FROM :schema.saga) AS counted_sum,
           (SELECT count(*) FROM :schema.dead_letter) + (SELECT count(*) FROM :schema.discarded) AS given_up,
           chaos.backlog() AS queued)
SELECT 'miscounted', '', format('%s published, and the saga counted %s, with a sum of %s, want %s of %s', published,
    counted, counted_sum, $1::int, sum) FROM seen WHERE published <> $1 OR counted <> $1 OR counted_sum <> sum
UNION ALL SELECT 'given up', '', format('%s messages are dead or discarded', given_up) FROM seen WHERE given_up > 0
UNION ALL SELECT 'left', '', format('%s messages are still queued', queued) FROM seen WHERE queued > 0;
