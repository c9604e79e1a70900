-- name: claim
-- The caller gives each id once and in order: two transactions that claim the same ids wait for each
-- other in one direction only.
INSERT INTO :schema.sent_id (id, sum)
SELECT u.id::uuid, u.sum FROM unnest($1::text[], $2::bytea[]) u(id, sum)
ON CONFLICT (id) DO NOTHING
RETURNING id::text;

-- name: sums
-- A statement of its own, because the insert's snapshot does not include the row it waited for. OFFSET 0 keeps the
-- subquery, so that each id is one probe of the index. The sum is text, which no setting of a session changes.
SELECT u.id, encode(s.sum, 'hex')
FROM unnest($1::text[]) u(id)
CROSS JOIN LATERAL (SELECT x.sum FROM :schema.sent_id x WHERE x.id = u.id::uuid OFFSET 0) s;

-- name: forget
-- No other transaction can hold the rows of our own transaction; SKIP LOCKED makes sure that the statement waits for
-- no other row either.
DELETE FROM :schema.sent_id s
USING unnest($1::text[]) u(id)
CROSS JOIN LATERAL (
    SELECT x.ctid AS tid FROM :schema.sent_id x WHERE x.id = u.id::uuid FOR UPDATE SKIP LOCKED) l
WHERE s.ctid = l.tid;

-- name: prune
DELETE FROM :schema.sent_id
WHERE ctid = ANY (ARRAY(
    SELECT x.ctid FROM :schema.sent_id x
    WHERE x.at < now() - make_interval(secs => $1)
    ORDER BY x.at LIMIT $2 FOR UPDATE SKIP LOCKED));
