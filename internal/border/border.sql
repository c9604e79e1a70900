-- What the checker writes and reads. Its tables have no constraints: they are to show what happened.

-- name: database
CREATE DATABASE there;

-- name: create
CREATE SCHEMA :schema;
-- Here: each message, written by the transaction that sends it.
CREATE TABLE :schema.told (key text, n bigint);
-- There: each message that entered the queue, in the order in which they did, and each that was handled.
CREATE TABLE :schema.entered (at bigserial, key text, n bigint);
CREATE TABLE :schema.handled (key text, n bigint);
CREATE FUNCTION :schema.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE said json := convert_from(NEW.body, 'UTF8');
BEGIN
    INSERT INTO :schema.entered (key, n) VALUES (said ->> 'Key', (said ->> 'N')::bigint);
    RETURN NULL;
END $$;
-- The name of the queue's table is known after its installation. A retry is a row again, of a message that has entered.
CREATE FUNCTION :schema.watch(endpoint text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE q int := (SELECT id FROM edda.queue WHERE queue.endpoint = watch.endpoint);
BEGIN
    EXECUTE format('CREATE TRIGGER note AFTER INSERT ON edda.%I FOR EACH ROW WHEN (NEW.attempt = 0) EXECUTE FUNCTION :schema.note()', 'queue_' || q);
END $$;

-- name: watch
SELECT :schema.watch($1);

-- name: tell
INSERT INTO :schema.told (key, n) VALUES ($1, $2);

-- name: handle
INSERT INTO :schema.handled (key, n) VALUES ($1, $2);

-- name: told
SELECT key, n FROM :schema.told;

-- name: entered
SELECT key, n FROM :schema.entered ORDER BY at;

-- name: handled
SELECT key, n FROM :schema.handled;

-- name: dead
SELECT count(*) FROM edda.dead_letter;
