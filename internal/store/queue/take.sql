-- Reads and deletions of engines that hold a row lock, or no lock. A statement that returns messages returns the
-- columns of Row first: due, id, sent, first_failed, attempt, conflict, kind, header, body, size, now.

-- name: take
-- The row lock is the claim. A header or a body of more than $4 bytes is left for read_large: so the server reads no
-- more from TOAST, and sends no more, than the process has memory for. xmax is not 0 if a transaction has locked the
-- row before: it released the row, or is dead.
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END,
       CASE WHEN octet_length(q.body) <= $4::int THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), q.ctid, q.xmax
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1
FOR UPDATE SKIP LOCKED;

-- name: take_permitted
-- A take that follows the request for a permit in the same pipeline. Without a permit it takes nothing: batches with
-- a permit would skip the messages that it has locked.
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END,
       CASE WHEN octet_length(q.body) <= $4::int THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), q.ctid, q.xmax
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1 * current_setting('edda.permit')::int
FOR UPDATE SKIP LOCKED;

-- name: read_large
-- Headers and bodies that a take, or the read of a relay, has left out. OFFSET 0 keeps the planner from reading the
-- whole index of a queue that it takes for empty: see claim.sql.
SELECT l.place - 1, x.header, x.body FROM unnest($1::timestamptz[], $2::uuid[]) WITH ORDINALITY l(due, id, place)
CROSS JOIN LATERAL (SELECT q.header, q.body FROM :queue q WHERE q.due = l.due AND q.id = l.id OFFSET 0) x;

-- name: next_due
-- $1 is now() of the transaction that has found no message. A message that became due since then counts: its wait is
-- over.
SELECT q.due - now() FROM :queue q WHERE q.due > $1 ORDER BY q.due, q.id LIMIT 1;

-- name: delete
-- Exactly the messages that this batch has decided, in the transaction that has their effects. If any cannot be
-- deleted, or this is not the transaction that took them, nothing commits. The second is a handler's fault and not a
-- matter of old routes, so its error is of a different class: a text that is no number.
WITH d AS (DELETE FROM :queue q WHERE q.ctid = ANY ($1::tid[]) RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM d) = $2, 'a taken message was gone'),
       CASE WHEN $3 <> '' AND $3 <> pg_current_xact_id()::text
            THEN ('a handler ended the transaction that took its message, and this is ' ||
                  pg_current_xact_id())::int END;

-- name: move
-- Moves messages that this transaction has taken to the queue of their partition, unchanged. All or nothing, as in
-- delete.
WITH gone AS (
    DELETE FROM :queue q WHERE q.ctid = ANY ($1::tid[])
    RETURNING q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body,
        q.last_error),
there AS (
    INSERT INTO :target (due, id, sent, first_failed, attempt, conflict, kind, header, body, last_error)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.last_error
        FROM gone g
    RETURNING 1)
SELECT :schema.expect((SELECT count(*) FROM there) = $2, 'a taken message was gone');

-- name: collapse
-- Moves messages of a partition back to the queue that they came through, whatever their due time.
WITH gone AS (
    DELETE FROM :queue q WHERE q.ctid = ANY (ARRAY(SELECT x.ctid FROM :queue x ORDER BY x.due,
        x.id LIMIT $1 FOR UPDATE))
    RETURNING q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body,
        q.last_error),
there AS (
    INSERT INTO :target (due, id, sent, first_failed, attempt, conflict, kind, header, body, last_error)
    SELECT g.due, g.id, g.sent, g.first_failed, g.attempt, g.conflict, g.kind, g.header, g.body, g.last_error
        FROM gone g
    RETURNING 1)
SELECT count(*) FROM there;

-- name: delete_timeouts
-- An optional clean-up of cancelled timeouts: a timeout that is firing at this moment is left alone, and will be
-- discarded because its instance no longer lists it.
DELETE FROM :queue q WHERE q.ctid = ANY (ARRAY(
    SELECT x.tid FROM unnest($1::timestamptz[], $2::uuid[]) u(due, id)
    CROSS JOIN LATERAL (
        SELECT m.ctid AS tid FROM :queue m WHERE m.due = u.due AND m.id = u.id FOR UPDATE SKIP LOCKED) x));

-- name: relay_look
-- From the mark, which is no cursor: see outbox/head.go. A cursor would skip messages that are due earlier and were
-- committed later, and break the order of two messages if one was committed before the other was written. A header or
-- a body of more than $4 bytes is left for read_large: so the server reads no more from TOAST, and sends no more,
-- than the process has memory for.
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind,
       CASE WHEN octet_length(q.header) <= $4::int THEN q.header END,
       CASE WHEN octet_length(q.body) <= $4::int THEN q.body END,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), q.ctid
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid) AND q.due <= now()
ORDER BY q.due, q.id
LIMIT $1;

-- name: relay_delete
-- Exactly the messages whose fate is decided. Each is found by its ctid without the index. The row may have changed,
-- since it was not locked: the key shows whether it is the same. A missing one was deleted by Bus.Cancel or by hand;
-- a row that a rewrite of the table has moved is relayed again. For the ARRAY see claim.sql.
DELETE FROM :queue q
USING unnest($1::tid[], $2::timestamptz[], $3::uuid[]) u(tid, due, id)
WHERE q.ctid = u.tid AND q.due = ANY (ARRAY[u.due]) AND q.id = u.id
RETURNING q.id;
