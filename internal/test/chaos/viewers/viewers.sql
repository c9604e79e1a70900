-- name: create
-- Whether charges of these orders die, which job is to be undone, and what a process said when it had undone one.
CREATE TABLE chaos.fault (yes boolean NOT NULL);
INSERT INTO chaos.fault VALUES (true);
CREATE TABLE chaos.undo (job bigint NOT NULL);
CREATE TABLE chaos.undone (job bigint NOT NULL, returned bigint NOT NULL, handled bigint NOT NULL);
-- The last letter before those of the job that is undone, and the latter with their numbers.
CREATE TABLE chaos.mark (id bigint NOT NULL);
CREATE TABLE chaos.letter (id bigint NOT NULL, message_id uuid NOT NULL, n bigint NOT NULL);

-- name: faulty
SELECT f.yes FROM chaos.fault f;

-- name: set_fault
UPDATE chaos.fault SET yes = $1;

-- name: told
INSERT INTO chaos.told (key, n) VALUES ('charge', $1);

-- name: effect
INSERT INTO chaos.effect (key, n) VALUES ('charge', $1);

-- name: effects
-- How many of the letters of the job have had their effect.
SELECT count(DISTINCT l.n) FROM chaos.letter l JOIN chaos.effect e ON e.key = 'charge' AND e.n = l.n;

-- name: mark
-- The letters of the job are those that die from now on.
INSERT INTO chaos.mark SELECT coalesce(max(d.id), 0) FROM :schema.dead_letter d;

-- name: keep_letters
-- Without those that die for ever: one that is tried again is another letter.
INSERT INTO chaos.letter (id, message_id, n)
SELECT d.id, d.message_id, m.n FROM :schema.dead_letter d
CROSS JOIN LATERAL (SELECT (convert_from(d.body, 'UTF8')::json ->> 'N')::bigint AS n) m
WHERE d.kind = 'viewers.charge' AND d.id > (SELECT max(k.id) FROM chaos.mark k) AND m.n % 50 <> 2;

-- name: truth
-- How many messages each endpoint has, whenever they are due; how many of its letters are dead; and the last state of
-- some orders.
SELECT q.endpoint || ' messages', (d.ready + d.delayed)::text
FROM :schema.queue_depths(ARRAY(SELECT id FROM :schema.queue), 1000000) d JOIN :schema.queue q ON q.id = d.queue
UNION ALL
SELECT q.endpoint || ' dead letters', (SELECT count(*) FROM :schema.dead_letter d WHERE d.endpoint = q.endpoint)::text
FROM :schema.queue q
UNION ALL
SELECT 'order ' || s.key, format('version %s, order %s, paid %s', s.version, s.state ->> 'N', s.state ->> 'Paid')
FROM :schema.saga s WHERE s.saga = 'order' AND s.key = ANY ($1::text[]);

-- name: living
SELECT count(*) FROM :schema.saga s WHERE s.saga = 'order' AND s.key = ANY ($1::text[]);

-- name: undo
INSERT INTO chaos.undo VALUES ($1);

-- name: to_undo
SELECT u.job FROM chaos.undo u WHERE NOT EXISTS (SELECT FROM chaos.undone d WHERE d.job = u.job) LIMIT 1;

-- name: undone
INSERT INTO chaos.undone VALUES ($1, $2, $3);

-- name: was_undone
SELECT count(*) FROM chaos.undone d WHERE d.job = $1;

-- name: check_undo
-- Each letter of the job that was undone was handled, or is dead again under its number, and not both.
SELECT CASE WHEN e.n IS NULL AND d.id IS NULL THEN 'vanished' ELSE 'undone though handled' END, 'charge/' || l.n,
    format('letter %s of order %s: effects %s, dead again %s', l.id, l.n, e.n IS NOT NULL, d.id IS NOT NULL)
FROM chaos.letter l
LEFT JOIN (SELECT DISTINCT n FROM chaos.effect WHERE key = 'charge') e ON e.n = l.n
LEFT JOIN :schema.dead_letter d ON d.id = l.id AND d.message_id = l.message_id
WHERE (e.n IS NULL) = (d.id IS NULL);

-- name: outcome_of_undo
SELECT count(*) FILTER (WHERE d.id IS NOT NULL), count(*) FILTER (WHERE d.id IS NULL)
FROM chaos.letter l LEFT JOIN :schema.dead_letter d ON d.id = l.id;

-- name: story
SELECT format('%s effect of %s/%s', e.at, e.key, e.n) FROM chaos.effect e WHERE e.key || '/' || e.n = $1;
