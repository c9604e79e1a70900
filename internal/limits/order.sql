-- name: create
CREATE SCHEMA ledger;
-- Each run of a handler: whether its process had the lane when it began, and what it returned.
CREATE TABLE ledger.run (no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text, n int, worker text,
    holds boolean,
    began timestamptz DEFAULT clock_timestamp(), ended timestamptz, ok boolean);
CREATE TABLE ledger.effect (key text, n int, sent timestamptz);
CREATE TABLE ledger.blow (worker text, kind text, at timestamptz DEFAULT clock_timestamp());
-- The ends of the lanes of a worker that stands still, and can extend nothing.
CREATE TABLE ledger.expiry (worker text, key text, at timestamptz DEFAULT clock_timestamp(), expires timestamptz);
CREATE TABLE ledger.quick (yes boolean);
INSERT INTO ledger.quick VALUES (false);

-- name: begin
-- A process that stood still between its claim and this moment has lost its lane without knowing, and holds nothing.
WITH i AS (
    INSERT INTO ledger.run (key, n, worker, holds)
    SELECT $1, $2, $3, EXISTS (SELECT FROM edda.lane l JOIN edda.session s ON s.id = l.session
                               WHERE l.key = $1 AND l.owner IS NOT NULL AND s.pid = $4 AND l.until > clock_timestamp())
    RETURNING no)
SELECT i.no, q.yes FROM i, ledger.quick q;

-- name: end
UPDATE ledger.run SET ended = clock_timestamp(), ok = $2 WHERE no = $1;

-- name: count
INSERT INTO ledger.effect (key, n, sent) VALUES ($1, $2, $3);

-- name: expiries
INSERT INTO ledger.expiry (worker, key, expires)
SELECT $1, l.key, l.until FROM edda.lane l JOIN edda.session s ON s.id = l.session WHERE s.pid = $2
    AND l.owner IS NOT NULL;

-- name: verdict
-- A run ends when its handler says so, with its process, or with the lane of a process that stands still. One overtakes
-- when a message before it runs later, whatever the reason: it had not been finished for good. A killed process may
-- have sent the beginning of a run that the server of a busy machine writes after the kill: nothing of that run is
-- left, although it begins later than it ends.
WITH span AS MATERIALIZED (
    SELECT r.key, r.n, r.began, r.no,
           least(coalesce(r.ended, 'infinity'),
                 coalesce((SELECT min(b.at) FROM ledger.blow b WHERE b.kind = 'kill' AND b.worker = r.worker),
                     'infinity'),
                 coalesce((SELECT min(x.expires) FROM ledger.expiry x WHERE x.worker = r.worker AND x.key = r.key
                     AND x.at >= r.began), 'infinity')) AS over
    FROM ledger.run r WHERE r.holds),
compared AS MATERIALIZED (
    SELECT s.n < max(s.n) OVER before AS overtaken, s.began < max(s.over) OVER before AS together
    FROM span s WINDOW before AS (PARTITION BY s.key ORDER BY s.began, s.no ROWS BETWEEN UNBOUNDED PRECEDING
        AND 1 PRECEDING)),
gap AS (
    SELECT r.began - lag(r.began) OVER (ORDER BY r.began) AS idle FROM ledger.run r WHERE r.began < $3),
late AS (
    SELECT e.n < max(e.n) OVER (PARTITION BY e.key ORDER BY e.sent ROWS BETWEEN UNBOUNDED PRECEDING
        AND 1 PRECEDING) AS yes FROM ledger.effect e)
SELECT (SELECT count(*) FROM compared WHERE overtaken), (SELECT count(*) FROM compared WHERE together),
    (SELECT count(*) FROM late WHERE yes),
       (SELECT count(*) FROM generate_series(0, $1::int - 1) k, generate_series(0, $2::int - 1) n
           WHERE NOT EXISTS (SELECT FROM ledger.effect e WHERE e.key = 'key-' || k AND e.n = n)),
       (SELECT count(*) - count(DISTINCT (e.key, e.n)) FROM ledger.effect e),
       (SELECT count(*) FROM ledger.run), (SELECT count(*) FROM ledger.run WHERE NOT ok), (SELECT count(*)
           FROM ledger.run WHERE NOT holds),
       (SELECT count(*) FROM ledger.blow WHERE kind = 'kill'), (SELECT count(*) FROM ledger.blow WHERE kind = 'freeze'),
       (SELECT coalesce(max(idle), interval '0') FROM gap);
