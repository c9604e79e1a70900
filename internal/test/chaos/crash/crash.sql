-- name: create
CREATE TABLE chaos.sent (
    id uuid NOT NULL, endpoint text NOT NULL, plan text NOT NULL, fate text NOT NULL,
    given boolean NOT NULL, iid uuid, by text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.handled (
    id uuid NOT NULL, endpoint text NOT NULL, plan text NOT NULL, by text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.step (
    iid uuid NOT NULL, saga text NOT NULL, key text NOT NULL, n int NOT NULL, look boolean NOT NULL,
    message uuid NOT NULL, plan text NOT NULL, pending uuid[] NOT NULL, completed boolean NOT NULL,
    by text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.version (
    seq bigserial, iid uuid NOT NULL, saga text NOT NULL, key text NOT NULL, op text NOT NULL,
    old bigint, new bigint, state text, tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos.tally (slot int PRIMARY KEY, n bigint NOT NULL);

CREATE FUNCTION chaos.note_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaos.version (iid, saga, key, op, new, state) VALUES (NEW.iid, NEW.saga, NEW.key, TG_OP,
            NEW.version, NEW.state);
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO chaos.version (iid, saga, key, op, old, new, state) VALUES (NEW.iid, NEW.saga, NEW.key, TG_OP,
            OLD.version, NEW.version, NEW.state);
    ELSE
        INSERT INTO chaos.version (iid, saga, key, op, old) VALUES (OLD.iid, OLD.saga, OLD.key, TG_OP, OLD.version);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER crash_version AFTER INSERT OR UPDATE OR DELETE ON :schema.saga
    FOR EACH ROW EXECUTE FUNCTION chaos.note_version();

-- All queues are read in the snapshot of the calling statement.
CREATE FUNCTION chaos.waiting() RETURNS TABLE (endpoint text, id uuid, detail text) STABLE LANGUAGE plpgsql AS $$
DECLARE
    q record;
BEGIN
    FOR q IN SELECT e.id, e.endpoint FROM :schema.queue e LOOP
        RETURN QUERY EXECUTE format(
            'SELECT %L::text, id, format(''%%s, due %%s, now %%s, attempt %%s, conflict %%s'',
                 kind, due, now(), attempt, conflict) FROM %I.queue_%s',
            q.endpoint, :'schema', q.id);
    END LOOP;
END $$;

CREATE FUNCTION chaos.reset() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q int;
BEGIN
    FOR q IN SELECT id FROM :schema.queue LOOP
        EXECUTE format('TRUNCATE %I.queue_%s', :'schema', q);
    END LOOP;
    TRUNCATE :schema.saga, :schema.sent_id, :schema.dead_letter, :schema.discarded, :schema.session,
        :schema.in_flight, :schema.suspect, :schema.history, :schema.history_range, :schema.history_life,
        chaos.sent, chaos.handled, chaos.step, chaos.version, chaos.blow, chaos.tally;
    INSERT INTO chaos.tally SELECT s, 0 FROM generate_series(0, 15) s;
END $$;

-- name: crash_reset
SELECT chaos.reset();

-- name: crash_handled
SELECT count(*) FROM chaos.handled;

-- name: crash_sent
INSERT INTO chaos.sent (id, endpoint, plan, fate, given, iid, by) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: crash_effect
INSERT INTO chaos.handled (id, endpoint, plan, by) VALUES ($1, $2, $3, $4);

-- name: crash_step
INSERT INTO chaos.step (iid, saga, key, n, look, message, plan, pending, completed, by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: crash_tally
UPDATE chaos.tally SET n = n + 1 WHERE slot = $1;

-- name: crash_forget
-- Without this every worker would be careful for ten minutes, and none would come to the statement that makes an
-- endpoint's row of settings, which is there once for all.
WITH gone AS (DELETE FROM :schema.session) DELETE FROM :schema.endpoint_setting;

-- name: crash_in_flight
-- A transaction has an id once it has locked a row: here, a message. A notification has one for a moment too.
SELECT count(*) FROM pg_stat_activity
WHERE application_name LIKE $1 AND backend_xid IS NOT NULL AND query NOT LIKE '%pg_notify%';

-- name: history_versions
SELECT v.iid, v.op, v.tx::text, coalesce(v.new, v.old), coalesce(v.state, ''),
       coalesce(s.history, l.page, '00000000-0000-0000-0000-000000000000')
FROM chaos.version v LEFT JOIN :schema.saga s ON s.iid = v.iid LEFT JOIN :schema.history_life l ON l.iid = v.iid
ORDER BY v.iid, v.seq;

-- name: history_fates
SELECT h.id, h.endpoint, 'handled', count(*) FROM chaos.handled h GROUP BY h.id, h.endpoint
UNION ALL SELECT d.message_id, d.endpoint, 'dead', 1 FROM :schema.dead_letter d
UNION ALL SELECT d.message_id, d.endpoint, 'discarded', 1 FROM :schema.discarded d;

-- name: history_empty
-- One table at a time. A statement for all would wait for one while it has another, and a batch that prepares its
-- statements locks them in any order.
TRUNCATE :schema.history;

-- name: history_empty_ranges
TRUNCATE :schema.history_range;

-- name: history_empty_lives
TRUNCATE :schema.history_life;

-- name: history_rotate
UPDATE :schema.ring SET since = now() - interval '1 year' WHERE name = 'history';

-- name: history_unset
UPDATE :schema.endpoint_setting SET history = NULL, history_sample = NULL;
