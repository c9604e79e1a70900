-- name: create
-- Changes of the limit, with the moments before and after each.
CREATE TABLE chaos.change (slots int NOT NULL, asked timestamptz NOT NULL, done timestamptz NOT NULL);
-- Runs of handlers that held their slots, with their true ends.
CREATE TABLE chaos.span (slot int, epoch bigint, worker text, began timestamptz, ended timestamptz);
CREATE INDEX ON chaos.span (began);

-- name: told_jobs
INSERT INTO chaos.told (key, n) SELECT 'job', n FROM generate_series(0, $1::int - 1) n;

-- name: told_turns
INSERT INTO chaos.told (key, n)
SELECT 'key-' || k, n FROM generate_series(0, $1::int - 1) k, generate_series(0, $2::int - 1) n;

-- name: begin_in_slot
-- A process that was frozen between its grant and this moment has lost its slot without knowing, and holds nothing.
WITH i AS (
    INSERT INTO chaos.run (worker, key, n, slot, epoch, holds)
    SELECT $1, $2, $3, $4, $5, EXISTS (
        SELECT FROM :schema.slot s WHERE s.name = 'working' AND s.no = $4 AND s.epoch = $5
            AND s.expires > clock_timestamp())
    RETURNING no)
SELECT i.no, c.yes FROM i, chaos.calm c;

-- name: begin_in_lane
-- A process that was frozen between its claim and this moment has lost its lane without knowing, and holds nothing.
WITH i AS (
    INSERT INTO chaos.run (worker, key, n, holds)
    SELECT $1, $2, $3, EXISTS (
        SELECT FROM :schema.lane l JOIN :schema.session s ON s.id = l.session
        WHERE l.key = $2 AND l.owner IS NOT NULL AND s.pid = $4 AND l.until > clock_timestamp())
    RETURNING no)
SELECT i.no, c.yes FROM i, chaos.calm c;

-- name: end
UPDATE chaos.run SET ended = clock_timestamp(), ok = $2 WHERE no = $1;

-- name: count
INSERT INTO chaos.effect (key, n, slot, epoch, sent) VALUES ($1, $2, $3, $4, $5);

-- name: slot_expiries
INSERT INTO chaos.expiry (worker, slot, epoch, expires)
SELECT $1, s.no, s.epoch, s.expires FROM :schema.slot s JOIN chaos.run r ON r.slot = s.no AND r.epoch = s.epoch
WHERE s.name = 'working' AND s.holder IS NOT NULL AND r.worker = $1;

-- name: lane_expiries
INSERT INTO chaos.expiry (worker, key, expires)
SELECT $1, l.key, l.until FROM :schema.lane l JOIN :schema.session s ON s.id = l.session
WHERE s.pid = $2 AND l.owner IS NOT NULL;

-- name: note_spans
-- Each run with its true end: what the handler said, or the end of its process, or of its time when the process was
-- frozen for longer, or the next run in its slot. One that has no end lasts until now.
INSERT INTO chaos.span
SELECT r.slot, r.epoch, r.worker, r.began, least(r.ended, clock_timestamp(),
    (SELECT min(b.at) FROM chaos.blow b WHERE b.kind = 'kill' AND b.worker = r.worker AND b.at >= r.began),
    (SELECT min(x.expires) FROM chaos.expiry x WHERE x.slot = r.slot AND x.epoch = r.epoch),
    (SELECT min(n.began) FROM chaos.run n WHERE n.slot = r.slot AND n.epoch > r.epoch))
FROM chaos.run r WHERE r.key = 'job' AND r.holds;

-- name: check_above
-- A handler was granted its slot a little before it began. The largest limit counts that may have been in force then:
-- until a change was asked for, the limit before was in force, from done on the new one, and between them either.
WITH change AS (SELECT slots, asked, lead(done) OVER (ORDER BY done) AS next FROM chaos.change),
counted AS (
    SELECT s.*, 1 + (SELECT count(*) FROM chaos.span o WHERE o.began < s.began AND o.ended > s.began
               AND o.began > s.began - (SELECT max(ended - began) FROM chaos.span)) AS n,
           coalesce((SELECT max(c.slots) FROM change c WHERE c.asked < s.began
               AND (c.next IS NULL OR c.next > s.began - interval '500 ms')), 0) AS allowed
    FROM chaos.span s)
SELECT 'above', '', format('slot %s epoch %s of %s began at %s as number %s of %s', slot, epoch, worker, began, n,
    allowed)
FROM counted WHERE n > allowed;

-- name: figures_of_slots
-- The runs, the changes, and the longest time in which fewer handlers ran than were allowed. The last change ends the
-- breaking. The smaller limit counts while the limit changes.
WITH moment AS (
    SELECT began AS at, 1 AS delta FROM chaos.span UNION ALL SELECT ended, -1 FROM chaos.span
    UNION ALL SELECT done, 0 FROM chaos.change),
finish AS (SELECT max(asked) AS at FROM chaos.change),
seen AS (SELECT DISTINCT at, sum(delta) OVER (ORDER BY at) AS running FROM moment WHERE at <= (SELECT at FROM finish)),
judged AS (
    SELECT s.at, s.running < least(
        (SELECT c.slots FROM chaos.change c
            ORDER BY c.done <= s.at DESC, abs(extract(epoch FROM s.at - c.done)) LIMIT 1),
        (SELECT min(c.slots) FROM chaos.change c WHERE c.asked < s.at AND c.done > s.at)) AS few
    FROM seen s),
turn AS (SELECT *, few IS DISTINCT FROM lag(few) OVER (ORDER BY at) AS turns FROM judged),
spell AS (SELECT few, at, lead(at) OVER (ORDER BY at) AS until FROM turn WHERE turns)
SELECT (SELECT count(*) FROM chaos.span), (SELECT count(*) FROM chaos.change),
       coalesce((SELECT max(coalesce(until, (SELECT at FROM finish)) - at) FROM spell WHERE few), interval '0');

-- name: slow_runs
SELECT count(*), coalesce(max(began), now()) FROM chaos.run WHERE worker = $1 AND key = 'slow';

-- name: check_stale
SELECT 'stale', '', format('job %s was sent at %s by slot %s epoch %s, which somebody else had then', e.n, e.sent,
    e.slot, e.epoch)
FROM chaos.effect e WHERE EXISTS (
    SELECT FROM chaos.run n WHERE n.slot = e.slot AND (n.epoch > e.epoch AND n.began < e.sent OR n.epoch = e.epoch
        AND NOT n.holds));

-- name: check_twice
SELECT 'twice', '', format('slot %s epoch %s was given to %s runs: %s', slot, epoch, count(*),
    string_agg(format('%s %s by %s', key, n, worker), ', '))
FROM chaos.run GROUP BY slot, epoch HAVING count(*) > 1;

-- name: check_starved
SELECT 'starved', '', format('worker %s got nothing from %s until %s', s.worker, s.at, until)
FROM chaos.blow s, chaos.calm c, LATERAL (
    SELECT least(c.at, (SELECT min(k.at) FROM chaos.blow k WHERE k.kind = 'kill' AND k.worker = s.worker)) AS until) u
WHERE s.kind = 'start' AND u.until - s.at > interval '12 seconds'
  AND NOT EXISTS (SELECT FROM chaos.run r WHERE r.worker = s.worker);

-- name: figures
SELECT (SELECT count(*) FROM chaos.run), (SELECT count(*) FROM chaos.run WHERE NOT ok), (SELECT count(*) FROM chaos.run
    WHERE NOT holds),
       (SELECT count(*) FROM chaos.blow WHERE kind = 'kill'), (SELECT count(*) FROM chaos.blow WHERE kind = 'freeze'),
       (SELECT coalesce(max(idle), interval '0')
        FROM (SELECT r.began - lag(r.began) OVER (ORDER BY r.began) AS idle FROM chaos.run r, chaos.calm c
            WHERE r.began < c.at) g);

-- name: check_order
-- A run overtakes when a message before it runs later, whatever the reason: that one had not been finished for good. A
-- killed process may have sent the beginning of a run that the server of a busy machine writes after the kill: nothing
-- of that run is left, although it begins later than it ends.
WITH span AS MATERIALIZED (
    SELECT r.key, r.n, r.began, r.no, r.worker,
           least(coalesce(r.ended, 'infinity'),
                 (SELECT min(b.at) FROM chaos.blow b WHERE b.kind = 'kill' AND b.worker = r.worker),
                 (SELECT min(x.expires) FROM chaos.expiry x WHERE x.worker = r.worker AND x.key = r.key
                     AND x.at >= r.began)) AS over
    FROM chaos.run r WHERE r.holds),
compared AS MATERIALIZED (
    SELECT s.*, max(s.n) OVER before AS latest, max(s.over) OVER before AS lasted
    FROM span s WINDOW before AS (PARTITION BY s.key ORDER BY s.began, s.no ROWS BETWEEN UNBOUNDED PRECEDING
        AND 1 PRECEDING))
SELECT 'overtakes', '', format('%s/%s ran at %s in %s, after %s/%s', key, n, began, worker, key, latest) FROM compared
    WHERE n < latest
UNION ALL
SELECT 'together', '', format('%s/%s began at %s in %s, while another one lasted until %s', key, n, began, worker,
    lasted)
FROM compared WHERE began < lasted;

-- name: check_late
SELECT 'late', '', format('%s/%s was sent at %s, after %s', key, n, sent, latest)
FROM (SELECT e.*, max(e.n) OVER (PARTITION BY e.key ORDER BY e.sent ROWS BETWEEN UNBOUNDED PRECEDING
    AND 1 PRECEDING) AS latest
      FROM chaos.effect e) e
WHERE e.n < e.latest;
