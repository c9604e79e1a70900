-- name: create
-- There: each message that entered the queue, in the order in which they did.
CREATE TABLE chaos.entered (at bigserial, key text, n bigint);
-- There: when each message that was told here was committed here.
CREATE TABLE chaos.committed (key text, n bigint, at timestamptz);
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE said json := convert_from(NEW.body, 'UTF8');
BEGIN
    INSERT INTO chaos.entered (key, n) VALUES (said ->> 'Key', (said ->> 'N')::bigint);
    RETURN NULL;
END $$;
-- The name of the queue's table is known after its installation. A retry is a row again, of a message that has entered.
CREATE FUNCTION chaos.watch(endpoint text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE q int := (SELECT id FROM :schema.queue WHERE queue.endpoint = watch.endpoint);
BEGIN
    EXECUTE format('CREATE TRIGGER note AFTER INSERT ON %I.%I FOR EACH ROW WHEN (NEW.attempt = 0)
            EXECUTE FUNCTION chaos.note()',
        :'schema', 'queue_' || q);
END $$;

-- name: watch
SELECT chaos.watch($1);

-- name: tell
INSERT INTO chaos.told (key, n) VALUES ($1, $2);

-- name: told
SELECT count(*) FROM chaos.told;

-- name: entered
SELECT count(*) FROM (SELECT DISTINCT key, n FROM chaos.entered) e;

-- name: handle
INSERT INTO chaos.effect (key, n) VALUES ($1, $2);

-- name: check_entered
-- A message enters the queue once, and not behind a later one of its key that entered for the first time.
WITH first AS (
    SELECT e.key, e.n, min(e.at) AS at, count(*) AS times FROM chaos.entered e GROUP BY e.key, e.n),
late AS (
    SELECT key, n, times, max(n) OVER (PARTITION BY key ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING
        AND 1 PRECEDING) AS latest
    FROM first)
SELECT 'doubled', key || '/' || n, format('message %s/%s entered the queue %s times', key, n, times) FROM late
    WHERE times > 1
UNION ALL
SELECT 'disorder', key || '/' || n, format('message %s/%s entered behind %s/%s', key, n, key, latest) FROM late
    WHERE n < latest;

-- name: check_dead
SELECT 'dead', '', format('%s is dead in %s: %s', kind, endpoint, error) FROM :schema.dead_letter;

-- name: committed_here
SELECT t.key, t.n, pg_xact_commit_timestamp(t.xmin) FROM chaos.told t;

-- name: lags
-- How many messages came there, how many a second, and how long after their commits here their rows were committed
-- there.
WITH lag AS (
    SELECT c.at AS here, pg_xact_commit_timestamp(e.xmin) AS there
    FROM chaos.committed c JOIN chaos.entered e USING (key, n)),
took AS (SELECT l.here, l.there, l.there - l.here AS lag FROM lag l)
SELECT count(*), (count(*) / extract(epoch FROM max(there) - min(here)))::float8,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY lag), percentile_disc(0.99) WITHIN GROUP (ORDER BY lag), max(lag)
FROM took;
