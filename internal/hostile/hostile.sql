-- name: create
CREATE SCHEMA witness;
-- The effects of good messages: by which route, which one, and when its handler wrote that.
CREATE TABLE witness.good (route text NOT NULL, n int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
-- Hostile messages that were accepted, and those of them that a handler ended well.
CREATE TABLE witness.attack (id uuid NOT NULL, what text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE witness.handled (id uuid NOT NULL);
-- Hostile messages that are in a queue at the end, once for each copy.
CREATE TABLE witness.waiting (id uuid NOT NULL);
GRANT USAGE ON SCHEMA witness TO hostile_runtime;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA witness TO hostile_runtime;

-- name: roles
-- The workers and the attacker have the rights of docs/operate/roles.md and no more.
CREATE ROLE hostile_runtime LOGIN;
CREATE ROLE hostile_sender LOGIN;
GRANT hostile_sender TO hostile_runtime;

-- name: good
INSERT INTO witness.good (route, n) VALUES ($1, $2);

-- name: handled
INSERT INTO witness.handled (id) VALUES ($1);

-- name: attacked
INSERT INTO witness.attack (id, what) VALUES ($1, $2);

-- name: send
SELECT message_id, copies FROM edda.send(kind => $1, body => $2, header => $3::json, endpoint => $4, publish => $5);

-- name: queues
SELECT endpoint, id FROM edda.queue ORDER BY id;

-- name: insert
INSERT INTO :queue (due, id, kind, header, body) VALUES (clock_timestamp(), $1, $2, $3, $4);

-- name: insert_forged
INSERT INTO :queue (due, id, kind, header, body, attempt, conflict, sent, first_failed)
VALUES ($7::text::timestamptz, $1, $2, $3, $4, $5, $5, $6::text::timestamptz, $6::text::timestamptz);

-- name: waiting
SELECT count(*) FROM :queue;

-- name: note_waiting
INSERT INTO witness.waiting (id) SELECT q.id FROM :queue q WHERE EXISTS (SELECT FROM witness.attack a
    WHERE a.id = q.id);

-- name: fates
-- One hostile message may have several fates: what was published has one for each copy, and one copy may wait when
-- another has ended.
SELECT count(*),
       count(*) FILTER (WHERE handled),
       count(*) FILTER (WHERE discarded),
       count(*) FILTER (WHERE dead),
       count(*) FILTER (WHERE NOT (handled OR discarded OR dead OR waiting))
FROM (SELECT EXISTS (SELECT FROM witness.handled h WHERE h.id = a.id) AS handled,
             EXISTS (SELECT FROM edda.discarded d WHERE d.message_id = a.id) AS discarded,
             EXISTS (SELECT FROM edda.dead_letter l WHERE l.message_id = a.id) AS dead,
             EXISTS (SELECT FROM witness.waiting w WHERE w.id = a.id) AS waiting
      FROM witness.attack a) f;

-- name: vanished
SELECT a.what, count(*) FROM witness.attack a
WHERE NOT EXISTS (SELECT FROM witness.handled h WHERE h.id = a.id)
  AND NOT EXISTS (SELECT FROM edda.discarded d WHERE d.message_id = a.id)
  AND NOT EXISTS (SELECT FROM edda.dead_letter l WHERE l.message_id = a.id)
  AND NOT EXISTS (SELECT FROM witness.waiting w WHERE w.id = a.id)
GROUP BY a.what ORDER BY a.what;

-- name: effects
-- How many good messages of a route have an effect, and how many effects are one too many.
SELECT count(DISTINCT n), count(*) - count(DISTINCT n) FROM witness.good WHERE route = $1 AND n > 0;

-- name: rate
SELECT count(*) FROM witness.good WHERE route = $1 AND at >= $2 AND at < $3;

-- name: gap
-- The longest time without an effect of a route, between two moments.
SELECT extract(epoch FROM max(at - before))::float8
FROM (SELECT at, lag(at, 1, $2::timestamptz) OVER (ORDER BY at) AS before
      FROM (SELECT at FROM witness.good WHERE route = $1 AND at >= $2 AND at < $3 UNION ALL SELECT $3) e) g;

-- name: progress
SELECT (SELECT count(*) FROM witness.good), (SELECT count(*) FROM witness.attack),
       (SELECT count(*) FROM edda.dead_letter), (SELECT count(*) FROM edda.discarded);

-- name: letters
-- What the dead letters say, by kind and the beginning of their errors: the answer to why a good message was lost.
SELECT l.endpoint, left(l.kind, 40), l.reason, left(l.error, 160), count(*), count(*) FILTER (WHERE NOT EXISTS (SELECT
    FROM witness.attack a WHERE a.id = l.message_id))
FROM edda.dead_letter l GROUP BY 1, 2, 3, 4
HAVING count(*) FILTER (WHERE NOT EXISTS (SELECT FROM witness.attack a WHERE a.id = l.message_id)) > 0
ORDER BY 6 DESC LIMIT 20;

-- name: left
-- What waits at the end, by kind.
SELECT a.what, count(*) FROM witness.waiting w JOIN witness.attack a USING (id) GROUP BY a.what ORDER BY a.what;
