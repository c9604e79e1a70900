-- Statements of relays. A relay looks at its queue with no lock and no transaction that lasts: the lease says who
-- relays, and the guard of the lease is in the transaction that deletes.

-- name: relay_snapshot
-- A statement of its own before the look: what had ended by then is in the look's snapshot.
SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint FROM pg_current_snapshot() s;

-- name: relay_look
-- From the mark, which is no cursor: see relayhead.go. A cursor would pass over what is due earlier and was committed
-- later, and break the order of two messages of which one was committed before the other was written. A header or a
-- body of more than $4 bytes stays behind, for read_large: so the server reads from TOAST, and sends, no more than the
-- process has memory for.
SELECT q.ctid, q.due, q.id, q.sent, q.first_failed, q.attempt, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END, CASE WHEN octet_length(q.body) <= $4::int
           THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now()
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1;

-- name: relay_delete
-- Exactly the messages that have met their fate. Where one lies is found without the index, and may have changed since
-- nobody had it locked: the key says whether it is the same. One that is not there was taken out by somebody else, by
-- Bus.Cancel or by hand; one that a rewrite of the table has moved is relayed again.
DELETE FROM :queue q
USING unnest($1::tid[], $2::timestamptz[], $3::uuid[]) u(tid, due, id)
WHERE q.ctid = u.tid AND q.due = u.due AND q.id = u.id
RETURNING q.id;

-- name: relay_mark
-- An endpoint that has run has a row of knob. Its queue does not become a relay's, since its program would come back.
INSERT INTO :schema.settings (name, value)
SELECT 'relay/' || q.endpoint, 'yes' FROM :schema.queue q
WHERE q.endpoint = $1 AND NOT EXISTS (SELECT FROM :schema.endpoint_setting k WHERE k.endpoint = q.endpoint)
ON CONFLICT ON CONSTRAINT settings_pkey DO NOTHING;

-- name: relay_marked
SELECT EXISTS (SELECT FROM :schema.settings WHERE name = 'relay/' || $1);
