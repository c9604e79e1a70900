-- name: create
-- What the parent triggered, and what was done there. No table has a constraint.
CREATE TABLE chaos.triggered (run uuid NOT NULL, n bigint NOT NULL);
CREATE TABLE chaos.work (worker text NOT NULL, key text NOT NULL, run uuid NOT NULL, attempt int NOT NULL,
    manifest text NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON chaos.work (run);
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

-- name: open
SELECT count(*) FROM :schema.run WHERE state IN ('waiting', 'queued', 'active');

-- name: figures
SELECT (SELECT count(*) FROM chaos.triggered),
       (SELECT count(*) FROM :schema.run WHERE state = 'succeeded'),
       (SELECT count(*) FROM :schema.run_attempt),
       (SELECT count(*) FROM :schema.run_attempt WHERE outcome = 'lost'),
       (SELECT count(*) FROM :schema.run_attempt WHERE outcome = 'failed'),
       (SELECT count(*) FROM chaos.work);

-- name: check
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
SELECT 'strange', '', format('%s is dead in %s: %s', kind, endpoint, error) FROM :schema.dead_letter;

-- name: story
SELECT line FROM (
    SELECT at, format('%s  work by %s, attempt %s, key %s', at, worker, attempt, key) FROM chaos.work
        WHERE run = $1::uuid
    UNION ALL
    SELECT at, format('%s  attempt %s ended: %s', at, attempt, outcome) FROM chaos.attempt_end WHERE run = $1::uuid
    UNION ALL
    SELECT at, format('%s  the run ended: %s', at, state) FROM chaos.run_end WHERE run = $1::uuid) s(at, line)
ORDER BY at;
