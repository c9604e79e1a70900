-- Who changed what. A row is written in the transaction of its change, and is never changed.
CREATE TABLE :schema.audit (
    number bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT audit_pkey PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor  text NOT NULL, -- as the program says; '' if it says nothing
    role   text NOT NULL DEFAULT session_user, -- as the database knows
    origin text NOT NULL,
    verb   text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    before json,
    after  json
);
CREATE INDEX audit_at_idx ON :schema.audit (at);
CREATE INDEX audit_target_idx ON :schema.audit (target, number);

-- The actor of the pause; '' while there is none.
ALTER TABLE :schema.endpoint_setting ADD COLUMN paused_by text NOT NULL DEFAULT '';
ALTER TABLE :schema.manifest ADD COLUMN paused_by text NOT NULL DEFAULT '';
ALTER TABLE :schema.manifest_group ADD COLUMN paused_by text NOT NULL DEFAULT '';

-- Sets a limit; see migration 8. A number that is not declared by a program is one of an operator, and has an entry in
-- the audit, by what the settings edda.actor, edda.origin and edda.reason of the transaction say.
CREATE OR REPLACE FUNCTION :schema.set_limit(name text, slots int, declares boolean DEFAULT false) RETURNS int
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    former   :schema.concurrency_limit;
    standing :schema.concurrency_limit;
    wanted   int := set_limit.slots;
BEGIN
    IF (set_limit.name COLLATE "C" ~ '^(named/)?[a-z][a-z0-9_.-]{0,62}$') IS NOT TRUE THEN
        RAISE EXCEPTION 'the name of a limit must match (named/)?[a-z][a-z0-9_.-]{0,62}' USING ERRCODE = '22023';
    ELSIF NOT (wanted BETWEEN 1 AND 10000) OR declares AND wanted IS NULL THEN
        RAISE EXCEPTION 'the limit of % must be 1 to 10000 slots', set_limit.name USING ERRCODE = '22023';
    END IF;
    SELECT c.* INTO former FROM :schema.concurrency_limit c WHERE c.name = set_limit.name;
    IF declares AND former.declared = wanted THEN
        RETURN former.slots;
    ELSIF wanted IS NULL AND former.declared IS NULL THEN
        RAISE EXCEPTION 'no program has declared a limit of %', set_limit.name USING ERRCODE = '22023';
    END IF;
    INSERT INTO :schema.concurrency_limit AS c (name, slots, declared, operated)
    VALUES (set_limit.name, coalesce(wanted, former.declared), CASE WHEN declares THEN wanted END, NOT declares)
    ON CONFLICT ON CONSTRAINT concurrency_limit_pkey DO UPDATE SET
        slots = CASE WHEN declares AND c.operated THEN c.slots ELSE coalesce(wanted, c.declared, c.slots) END,
        declared = CASE WHEN declares THEN wanted ELSE c.declared END,
        operated = CASE WHEN declares THEN c.operated ELSE wanted IS NOT NULL END,
        changed = CASE WHEN declares AND c.operated THEN c.changed ELSE clock_timestamp() END
    RETURNING c.* INTO standing;
    IF NOT (declares AND standing.operated) THEN
        PERFORM :schema.adjust_slots(set_limit.name);
    END IF;
    IF NOT declares AND (former.slots, former.operated) IS DISTINCT FROM (standing.slots, standing.operated) THEN
        INSERT INTO :schema.audit (actor, origin, verb, target, reason, before, after)
        VALUES (coalesce(current_setting('edda.actor', true), ''), coalesce(nullif(current_setting('edda.origin',
            true), ''), current_setting('application_name')), CASE WHEN wanted IS NULL THEN 'limit.reset'
            ELSE 'limit.set' END, set_limit.name, coalesce(current_setting('edda.reason', true), ''),
            json_strip_nulls(json_build_object('limit', former.slots, 'operated', former.operated)),
            json_build_object('limit', standing.slots, 'operated', standing.operated));
    END IF;
    RETURN standing.slots;
END $$;
