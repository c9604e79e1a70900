-- name: create
CREATE SCHEMA witness;
CREATE TABLE witness.run (slot int, epoch bigint, worker text, n int, holds boolean,
    began timestamptz DEFAULT clock_timestamp(), ended timestamptz, PRIMARY KEY (slot, epoch));
CREATE TABLE witness.effect (n int, slot int, epoch bigint, sent timestamptz);
-- What we did: changes of the limit, with the time before and after, and blows to workers.
CREATE TABLE witness.change (slots int, asked timestamptz, done timestamptz);
CREATE TABLE witness.blow (worker text, kind text, at timestamptz DEFAULT clock_timestamp());
-- The end of the time of slots whose worker stands still, and can renew nothing.
CREATE TABLE witness.expiry (slot int, epoch bigint, expires timestamptz);
CREATE TABLE witness.quick (yes boolean);
INSERT INTO witness.quick VALUES (false);
CREATE TABLE witness.worker (name text, since timestamptz DEFAULT clock_timestamp(), until timestamptz);

-- name: begin
-- A process that was stopped between its grant and this moment has lost its slot without knowing, and holds nothing.
WITH i AS (
    INSERT INTO witness.run (slot, epoch, worker, n, holds)
    SELECT $1, $2, $3, $4, EXISTS (SELECT FROM edda.slot s WHERE s.name = 'jobs' AND s.no = $1 AND s.epoch = $2
        AND s.expires > clock_timestamp()))
SELECT yes FROM witness.quick;

-- name: end
UPDATE witness.run SET ended = clock_timestamp() WHERE slot = $1 AND epoch = $2;

-- name: count
INSERT INTO witness.effect (n, slot, epoch, sent) VALUES ($1, $2, $3, $4);

-- name: expiries
INSERT INTO witness.expiry (slot, epoch, expires)
SELECT s.no, s.epoch, s.expires FROM edda.slot s JOIN witness.run r ON r.slot = s.no AND r.epoch = s.epoch
WHERE s.name = 'jobs' AND s.holder IS NOT NULL AND r.worker = $1;

-- name: spans
-- Each run with its true end: what the handler said, or the end of its process, or of its time when the process was
-- stopped for longer, or the next run in its slot.
SELECT r.slot, r.epoch, r.worker, r.began,
       least(coalesce(r.ended, 'infinity'),
             coalesce((SELECT min(b.at) FROM witness.blow b WHERE b.kind = 'kill' AND b.worker = r.worker
                 AND b.at >= r.began), 'infinity'),
             coalesce((SELECT min(x.expires) FROM witness.expiry x WHERE x.slot = r.slot AND x.epoch = r.epoch),
                 'infinity'),
             coalesce((SELECT min(n.began) FROM witness.run n WHERE n.slot = r.slot AND n.epoch > r.epoch), 'infinity'))
FROM witness.run r WHERE r.n >= 0 AND r.holds ORDER BY r.began;

-- name: changes
SELECT slots, asked, done FROM witness.change ORDER BY done;

-- name: counts
SELECT (SELECT count(*) FROM witness.effect e WHERE EXISTS (
            SELECT FROM witness.run n WHERE n.slot = e.slot AND (n.epoch > e.epoch AND n.began < e.sent
                OR n.epoch = e.epoch AND NOT n.holds))),
       (SELECT count(*) FROM generate_series(0, $1::int - 1) n WHERE NOT EXISTS (SELECT FROM witness.effect e
           WHERE e.n = n)),
       (SELECT count(*) - count(DISTINCT e.n) FROM witness.effect e),
       (SELECT count(*) FROM witness.run WHERE n >= 0),
       (SELECT count(*) FROM witness.blow WHERE kind = 'kill'),
       (SELECT count(*) FROM witness.blow WHERE kind = 'stop'),
       (SELECT count(*) FROM witness.worker w WHERE w.until - w.since > interval '12 seconds'
           AND NOT EXISTS (SELECT FROM witness.run r WHERE r.worker = w.name));
