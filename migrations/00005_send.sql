-- send is how database/sql, psql and other languages send: scalar arguments only.
--   SELECT * FROM edda.send(kind => 'order.place', body => '{"OrderID":"7"}');
-- endpoint overrides routing. With publish the message goes to every endpoint that consumes the kind,
-- possibly to none. due is the earliest moment of handling, now when null. A caller-given id makes the
-- send repeatable for seven days: duplicate is then true and nothing is written.
CREATE FUNCTION :schema.send(
    kind text, body bytea, header json DEFAULT '{}', endpoint text DEFAULT NULL, publish boolean DEFAULT false,
    id uuid DEFAULT NULL, due timestamptz DEFAULT NULL,
    OUT message_id uuid, OUT copies int, OUT duplicate boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    target int;
    names  text;
    digest bytea := sha256(convert_to(coalesce(send.endpoint, '') || E'\n' || send.kind || E'\n', 'UTF8') || send.body);
    stored bytea;
BEGIN
    copies := 0;
    duplicate := false;
    message_id := coalesce(send.id, gen_random_uuid());
    IF send.kind !~ '^[a-z][a-z0-9_.-]{0,62}$' OR send.kind IS NULL THEN
        RAISE EXCEPTION 'kind must match [a-z][a-z0-9_.-]{0,62}' USING ERRCODE = '22023';
    ELSIF octet_length(send.body) > 1048576 OR send.body IS NULL THEN
        RAISE EXCEPTION 'body must have at most 1048576 bytes' USING ERRCODE = '22023';
    ELSIF json_typeof(send.header) <> 'object' OR octet_length(send.header::text) > 66560 THEN
        RAISE EXCEPTION 'header must be a JSON object of at most 65 KiB' USING ERRCODE = '22023';
    ELSIF send.due IS NOT NULL AND (NOT isfinite(send.due) OR send.due > now() + interval '10 years') THEN
        RAISE EXCEPTION 'due must be within 10 years' USING ERRCODE = '22023';
    END IF;

    IF send.publish THEN -- a subscriber that is being added waits for us, or we for it
        PERFORM pg_advisory_xact_lock_shared(1162101825, tableoid::int) FROM :schema.subscription_generation;
    ELSIF send.endpoint IS NULL THEN
        SELECT string_agg(q.endpoint, ', ' ORDER BY q.endpoint), count(*) INTO names, copies
        FROM :schema.subscription s JOIN :schema.queue q ON q.id = s.queue WHERE s.kind = send.kind;
        IF copies = 0 THEN
            RAISE EXCEPTION 'no endpoint consumes %', send.kind
                USING ERRCODE = 'ED002', HINT = 'Run the endpoint once, or name one in the argument endpoint.';
        ELSIF copies > 1 THEN
            RAISE EXCEPTION 'several endpoints consume %: %', send.kind, names
                USING ERRCODE = 'ED003', HINT = 'Name one in the argument endpoint, or publish.';
        END IF;
        copies := 0;
    ELSIF NOT EXISTS (SELECT FROM :schema.queue q WHERE q.endpoint = send.endpoint) THEN
        RAISE EXCEPTION 'there is no endpoint %', send.endpoint
            USING ERRCODE = 'ED002', HINT = 'Run the endpoint once, or run: edda migrate install.';
    END IF;

    IF send.id IS NOT NULL THEN
        INSERT INTO :schema.sent_id (id, sum) VALUES (send.id, digest) ON CONFLICT (id) DO NOTHING;
        IF NOT FOUND THEN
            SELECT sum INTO stored FROM :schema.sent_id s WHERE s.id = send.id;
            IF stored IS DISTINCT FROM digest THEN
                RAISE EXCEPTION 'message id % was sent before with another content', send.id USING ERRCODE = 'ED004';
            END IF;
            duplicate := true;
            RETURN;
        END IF;
    END IF;

    FOR target IN
        SELECT q.id FROM :schema.queue q
        WHERE q.endpoint = send.endpoint
           OR send.endpoint IS NULL AND q.id IN (SELECT s.queue FROM :schema.subscription s WHERE s.kind = send.kind)
        ORDER BY q.id
    LOOP
        EXECUTE format('INSERT INTO %I.queue_%s (due, id, kind, header, body) VALUES (coalesce($1, clock_timestamp()), $2, $3, $4, $5)',
                       :'schema', target)
        USING send.due, message_id, send.kind, convert_to(send.header::text, 'UTF8'), send.body;
        copies := copies + 1;
    END LOOP;
END $$;
