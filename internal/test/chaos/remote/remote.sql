-- name: create
-- What the parent triggered, and what was done there. No table has a constraint.
CREATE TABLE chaos.triggered (run uuid NOT NULL, n bigint NOT NULL);
CREATE TABLE chaos.work (worker text NOT NULL, key text NOT NULL, run uuid NOT NULL, attempt int NOT NULL,
    manifest text NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON chaos.work (run);
-- Which process there had an attempt, and what it was about to report.
CREATE TABLE chaos.begun (worker text NOT NULL, run uuid NOT NULL, attempt int NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON chaos.begun (run);
CREATE TABLE chaos.said (worker text NOT NULL, run uuid NOT NULL, attempt int NOT NULL, outcome text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON chaos.said (run);
-- Reports that were dropped here, though their attempts were not over.
CREATE TABLE chaos.dropped (worker text NOT NULL, what text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
-- Every end of a run, and of an attempt.
CREATE TABLE chaos.run_end (run uuid NOT NULL, state text NOT NULL, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE chaos.attempt_end (run uuid NOT NULL, attempt int NOT NULL, outcome text NOT NULL,
    at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION chaos.note_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.run_end (run, state) VALUES (NEW.id, NEW.state);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OF state ON :schema.run FOR EACH ROW
    WHEN (NEW.state NOT IN ('waiting', 'queued', 'active')) EXECUTE FUNCTION chaos.note_run();
CREATE FUNCTION chaos.note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.attempt_end (run, attempt, outcome) VALUES (NEW.run, NEW.attempt, NEW.outcome);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OF outcome ON :schema.run_attempt FOR EACH ROW
    WHEN (NEW.outcome IS NOT NULL) EXECUTE FUNCTION chaos.note_attempt();

-- name: triggered
INSERT INTO chaos.triggered (run, n) VALUES ($1, $2);

-- name: work
INSERT INTO chaos.work (worker, key, run, attempt, manifest, n) VALUES ($1, $2, $3, $4, $5, $6);

-- name: begun
INSERT INTO chaos.begun (worker, run, attempt) VALUES ($1, $2, $3);

-- name: said
INSERT INTO chaos.said (worker, run, attempt, outcome) VALUES ($1, $2, $3, $4);

-- name: dropped
INSERT INTO chaos.dropped (worker, what) VALUES ($1, $2);

-- name: open
SELECT count(*) FROM :schema.run WHERE state IN ('waiting', 'queued', 'active');

-- name: figures
SELECT (SELECT count(*) FROM chaos.triggered),
       (SELECT count(*) FROM :schema.run WHERE state = 'succeeded'),
       (SELECT count(*) FROM :schema.run_attempt),
       (SELECT count(*) FROM :schema.run_attempt WHERE outcome = 'lost'),
       (SELECT count(*) FROM :schema.run_attempt WHERE outcome = 'failed'),
       (SELECT count(*) FROM chaos.work),
       (SELECT count(*) FROM chaos.blow WHERE kind = 'kill'),
       (SELECT count(*) FROM chaos.blow WHERE kind = $1);

-- name: check
-- A process that is killed takes with it the work that it has begun, and one here, in the places 1 and 3, the reports
-- that it has in hand. $1 is the kind of a blow at the broker, $2 how long before a loss its reason may lie, $3 for how
-- long a report may be in a hand, and $4 for how long one may be on its way. Work that begins so late before the loss
-- has no sign of life in the database yet, and counts as work that was never begun. No process has the name of one that
-- was killed, and what that wrote at last may be here after the kill.
WITH runs AS (
    SELECT run, r.state, t.triggered, t.n FROM (SELECT run, n, true AS triggered FROM chaos.triggered) t
    FULL JOIN (SELECT id AS run, state FROM :schema.run) r USING (run))
SELECT 'twice', run::text, format('run %s ended %s times', run, count(*)) FROM chaos.run_end
    GROUP BY run HAVING count(*) > 1
UNION ALL
SELECT 'twice', run::text, format('attempt %s of run %s ended %s times', attempt, run, count(*))
    FROM chaos.attempt_end GROUP BY run, attempt HAVING count(*) > 1
UNION ALL
SELECT 'forgotten', run::text, format('run %s is %s', run, coalesce(state, 'gone')) FROM runs
    WHERE triggered AND (state IS NULL OR state IN ('waiting', 'queued', 'active'))
UNION ALL
SELECT 'forgotten', run::text, format('run %s has succeeded, and nobody did its work', run) FROM runs
    WHERE state = 'succeeded' AND NOT EXISTS (SELECT FROM chaos.work w WHERE w.run = runs.run)
UNION ALL
SELECT 'wrongkey', w.run::text, format('work %s of run %s was done under key %s', w.n, w.run, w.key)
    FROM chaos.work w LEFT JOIN chaos.triggered t ON t.run::text = w.key AND t.n = w.n
    WHERE w.key <> w.run::text OR t.run IS NULL
UNION ALL
SELECT 'strange', run::text, format('run %s is %s, triggered: %s', run, state, coalesce(triggered, false)) FROM runs
    WHERE triggered IS NULL OR state IN ('dead', 'cancelled', 'timed_out')
UNION ALL
SELECT 'strange', run::text, format('attempt %s of run %s has no end', attempt, run) FROM :schema.run_attempt
    WHERE outcome IS NULL AND run IN (SELECT id FROM :schema.run WHERE state = 'succeeded')
UNION ALL
SELECT 'strange', run::text, format('run %s has succeeded, and no end of it was written down', run) FROM runs
    WHERE state = 'succeeded' AND NOT EXISTS (SELECT FROM chaos.run_end e WHERE e.run = runs.run)
UNION ALL
SELECT 'strange', r.run::text, format('run %s has succeeded, and its last attempt is %s', r.run,
        coalesce(l.outcome, 'open'))
    FROM runs r CROSS JOIN LATERAL (SELECT a.outcome FROM :schema.run_attempt a WHERE a.run = r.run
        ORDER BY a.attempt DESC LIMIT 1) l
    WHERE r.state = 'succeeded' AND l.outcome IS DISTINCT FROM 'succeeded'
UNION ALL
SELECT 'unsaid', a.run::text, format('attempt %s of run %s has %s, and nobody said so', a.attempt, a.run, a.outcome)
    FROM :schema.run_attempt a WHERE a.outcome IN ('succeeded', 'failed') AND NOT EXISTS (
        SELECT FROM chaos.said s WHERE s.run = a.run AND s.attempt = a.attempt AND s.outcome = a.outcome)
UNION ALL
SELECT 'unexplained', a.run::text, format('attempt %s of run %s was lost without a reason', a.attempt, a.run)
    FROM :schema.run_attempt a WHERE a.outcome = 'lost'
    AND EXISTS (SELECT FROM chaos.begun b WHERE b.run = a.run AND b.attempt = a.attempt
        AND b.at < a.ended - $4::interval)
    AND NOT EXISTS (
        SELECT FROM chaos.begun b JOIN chaos.blow k ON k.at BETWEEN a.ended - $2::interval AND a.ended
        WHERE b.run = a.run AND b.attempt = a.attempt
            AND (k.kind = 'kill' AND k.worker = b.worker OR k.kind = $1 AND k.at > b.at))
    AND NOT EXISTS (
        SELECT FROM chaos.said s JOIN chaos.blow k ON k.at BETWEEN s.at - $4::interval AND s.at + $3::interval
        WHERE s.run = a.run AND s.attempt = a.attempt AND k.kind = 'kill' AND k.worker ~ '^remote-[13]-')
UNION ALL
SELECT 'dropped', '', format('%s dropped a report: %s', worker, what) FROM chaos.dropped
UNION ALL
SELECT 'strange', '', format('%s is dead in %s: %s', kind, endpoint, error) FROM :schema.dead_letter;

-- name: story
SELECT line FROM (
    SELECT at, format('%s  work by %s, attempt %s, key %s', at, worker, attempt, key) FROM chaos.work
        WHERE run = $1::uuid
    UNION ALL
    SELECT at, format('%s  begun by %s, attempt %s', at, worker, attempt) FROM chaos.begun WHERE run = $1::uuid
    UNION ALL
    SELECT at, format('%s  said by %s, attempt %s: %s', at, worker, attempt, outcome) FROM chaos.said
        WHERE run = $1::uuid
    UNION ALL
    SELECT k.at, format('%s  %s of %s', k.at, k.kind, k.worker) FROM chaos.blow k
        WHERE k.kind <> 'start' AND k.at BETWEEN (SELECT min(at) - interval '5 s' FROM chaos.begun WHERE run = $1::uuid)
            AND (SELECT max(at) FROM chaos.run_end WHERE run = $1::uuid)
    UNION ALL
    SELECT at, format('%s  attempt %s ended: %s', at, attempt, outcome) FROM chaos.attempt_end WHERE run = $1::uuid
    UNION ALL
    SELECT at, format('%s  the run ended: %s', at, state) FROM chaos.run_end WHERE run = $1::uuid) s(at, line)
ORDER BY at;
