-- Statements of relays. A relay looks at its queue with no lock and no transaction that lasts: the lease says who relays,
-- and the guard of the lease is in the transaction that deletes.

-- name: relay_look
-- Always from the head. A cursor would pass over what is due earlier and was committed later, and break the order of two
-- messages of which one was committed before the other was written.
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.kind, q.header,
       CASE WHEN octet_length(q.body) <= 65536 THEN q.body END, octet_length(q.body), now()
FROM :queue q
WHERE q.due <= now()
ORDER BY q.due, q.id
LIMIT $1;

-- name: relay_body
SELECT q.body FROM :queue q WHERE q.due = $1 AND q.id = $2;

-- name: relay_delete
-- Exactly the messages that have met their fate. One that is not there was taken out by somebody else, by Bus.Cancel or by hand. OFFSET 0
-- keeps each message one probe of the index.
WITH gone AS (
    DELETE FROM :queue q WHERE q.ctid = ANY (ARRAY(
        SELECT x.tid FROM unnest($1::timestamptz[], $2::uuid[]) u(due, id)
        CROSS JOIN LATERAL (SELECT m.ctid AS tid FROM :queue m WHERE m.due = u.due AND m.id = u.id OFFSET 0) x))
    RETURNING q.id)
SELECT coalesce(array_agg(g.id), '{}') FROM gone g;
