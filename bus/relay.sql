-- Statements of relays. A relay looks at its queue with no lock and no transaction that lasts: the lease says who
-- relays, and the guard of the lease is in the transaction that deletes.

-- name: relay_snapshot
-- A statement of its own before the look: what had ended by then is in the look's snapshot.
SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint FROM pg_current_snapshot() s;

-- name: relay_mark
-- An endpoint that has run has a row of knob. Its queue does not become a relay's, since its program would come back.
INSERT INTO :schema.settings (name, value)
SELECT 'relay/' || q.endpoint, 'yes' FROM :schema.queue q
WHERE q.endpoint = $1 AND NOT EXISTS (SELECT FROM :schema.endpoint_setting k WHERE k.endpoint = q.endpoint)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: relay_marked
SELECT EXISTS (SELECT FROM :schema.settings WHERE name = 'relay/' || $1);
