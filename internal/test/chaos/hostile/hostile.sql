-- name: create
-- The workers and the attacker have the rights of the page on roles and no more.
CREATE ROLE hostile_runtime LOGIN;
CREATE ROLE hostile_sender LOGIN;
GRANT hostile_sender TO hostile_runtime;
-- Hostile messages that were accepted, and those of them that a handler ended well.
CREATE TABLE chaos.attack (id uuid NOT NULL, what text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.handled (id uuid NOT NULL);
-- Hostile messages that are in a queue at the end, once for each copy.
CREATE TABLE chaos.waiting (id uuid NOT NULL);
GRANT USAGE ON SCHEMA chaos TO hostile_runtime;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA chaos TO hostile_runtime;

CREATE FUNCTION chaos.note_waiting() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q int;
BEGIN
    FOR q IN SELECT id FROM :schema.queue LOOP
        EXECUTE format('INSERT INTO chaos.waiting SELECT q.id FROM %I.queue_%s q
            WHERE EXISTS (SELECT FROM chaos.attack a WHERE a.id = q.id)', :'schema', q);
    END LOOP;
END $$;

-- name: good
INSERT INTO chaos.effect (key, n) VALUES ($1, $2);

-- name: handled
INSERT INTO chaos.handled (id) VALUES ($1);

-- name: attacked
INSERT INTO chaos.attack (id, what) VALUES ($1, $2);

-- name: send
SELECT message_id, copies FROM :schema.send(kind => $1, body => $2, header => $3::json, endpoint => $4, publish => $5);

-- name: queues
SELECT endpoint, format('%I.queue_%s', :'schema', id) FROM :schema.queue ORDER BY id;

-- name: insert
INSERT INTO :queue (due, id, kind, header, body) VALUES (clock_timestamp(), $1, $2, $3, $4);

-- name: insert_forged
INSERT INTO :queue (due, id, kind, header, body, attempt, conflict, sent, first_failed)
VALUES ($7::text::timestamptz, $1, $2, $3, $4, $5, $5, $6::text::timestamptz, $6::text::timestamptz);

-- name: note_waiting
SELECT chaos.note_waiting();

-- name: told
INSERT INTO chaos.told (key, n) SELECT $1, n FROM generate_series(1, $2::int) n;

-- name: fates
-- One hostile message may have several fates: what was published has one for each copy.
SELECT count(*),
       count(*) FILTER (WHERE EXISTS (SELECT FROM chaos.handled h WHERE h.id = a.id)),
       count(*) FILTER (WHERE EXISTS (SELECT FROM :schema.discarded d WHERE d.message_id = a.id)),
       count(*) FILTER (WHERE EXISTS (SELECT FROM :schema.dead_letter l WHERE l.message_id = a.id))
FROM chaos.attack a;

-- name: check_vanished
SELECT 'vanished', '', format('%s by %s has no fate', a.id, a.what) FROM chaos.attack a
WHERE NOT EXISTS (SELECT FROM chaos.handled h WHERE h.id = a.id)
  AND NOT EXISTS (SELECT FROM :schema.discarded d WHERE d.message_id = a.id)
  AND NOT EXISTS (SELECT FROM :schema.dead_letter l WHERE l.message_id = a.id)
  AND NOT EXISTS (SELECT FROM chaos.waiting w WHERE w.id = a.id);

-- name: check_left
SELECT 'left', '', format('%s by %s still waits', a.id, a.what) FROM chaos.waiting w JOIN chaos.attack a USING (id);

-- name: rates
-- The effects of a route in the quiet period and in the one under attack, and the longest time without any under
-- attack.
SELECT count(*) FILTER (WHERE at >= $2 AND at < $3), count(*) FILTER (WHERE at >= $3 AND at < $4),
       (SELECT extract(epoch FROM max(g.at - before))::float8
        FROM (SELECT e.at, lag(e.at, 1, $3::timestamptz) OVER (ORDER BY e.at) AS before
              FROM (SELECT at FROM chaos.effect WHERE key = $1 AND at >= $3 AND at < $4 UNION ALL
                  SELECT $4::timestamptz) e) g)
FROM chaos.effect WHERE key = $1;

-- name: letters
SELECT format('%s of %s %s: %s: %s', count(*), l.endpoint, left(l.kind, 40), l.reason, left(l.error, 160))
FROM :schema.dead_letter l WHERE NOT EXISTS (SELECT FROM chaos.attack a WHERE a.id = l.message_id)
GROUP BY l.endpoint, left(l.kind, 40), l.reason, left(l.error, 160) ORDER BY count(*) DESC LIMIT 20;
