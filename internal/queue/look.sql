-- Reads for tools. They lock nothing.

-- name: peek
SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header,
       substring(q.body FROM 1 FOR $4::int),
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(), octet_length(q.body),
       q.last_error
FROM :queue q
WHERE (q.due, q.id) > ($2::timestamptz, $3::uuid)
ORDER BY q.due, q.id
LIMIT $1;

-- name: estimate_ready
-- What the planner believes: reltuples of pg_class, scaled to the present size of the table, and the part of it that
-- the statistics of due put before now.
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due <= now();

-- name: estimate_delayed
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due > now();

-- name: find
-- What a queue knows of one message, as often as it has it. The queue is read from one end to the other: it has no
-- index of ids. $2 is how much of the body.
SELECT m.due, m.id, m.sent, m.first_failed, m.attempt, m.conflict, m.kind, m.header,
       substring(m.body FROM 1 FOR $2::int),
       octet_length(m.kind) + octet_length(m.header) + octet_length(m.body), now(), octet_length(m.body), m.last_error,
       coalesce(m.lane, ''), coalesce(m.claim, 0), m.owner, m.was_due, coalesce(m.cancelled, ''), coalesce(m.deaths, 0),
       coalesce(m.deaths_alone, 0)
FROM (
    SELECT q.due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, q.last_error,
           NULL AS lane, q.claim, q.owner, q.was_due, q.cancelled, q.deaths, q.deaths_alone
    FROM :queue q WHERE q.id = $1
    UNION ALL
    SELECT p.due, p.id, p.sent, p.first_failed, p.attempt, p.conflict, p.kind, p.header, p.body, p.last_error, p.key,
           NULL, NULL, NULL, p.cancelled, p.deaths, p.deaths_alone
    FROM :schema.parked p WHERE p.queue = $3 AND p.id = $1) m
ORDER BY m.due
LIMIT 100;

-- name: locate
-- Where messages are in this queue, $3, by their ids. It is read from one end to the other: it has no index of ids. Of
-- the messages before one that is due, or before one of a key that is parked, $2 are counted at most; what that may
-- cost must not decide how the queue is read. xmax tells of a transaction that has the row locked.
WITH here AS MATERIALIZED (
    SELECT q.id, q.due, q.sent, q.attempt, q.kind, CASE WHEN cardinality($1::uuid[]) = 1 THEN q.header END AS header,
           q.last_error, q.was_due, q.cancelled, q.owner, q.xmax AS mark
    FROM :queue q WHERE q.id = ANY ($1::uuid[]) LIMIT 10000)
SELECT h.id, h.due, h.sent, h.attempt, h.kind, h.header, h.last_error, now(), h.was_due, h.cancelled, NULL AS lane,
       h.owner IS NULL AND :schema.in_hand(h.mark) AS in_hand, CASE WHEN h.due > now() THEN h.owner END AS holder,
       h.due AS until,
       CASE WHEN h.due <= now() THEN (
           SELECT count(*) FROM (
               SELECT FROM :queue b WHERE (b.due, b.id) < (h.due, h.id) ORDER BY b.due, b.id LIMIT $2) c) ELSE 0 END
FROM here h
UNION ALL
SELECT p.id, p.due, p.sent, p.attempt, p.kind, CASE WHEN cardinality($1::uuid[]) = 1 THEN p.header END, p.last_error,
       now(), NULL, p.cancelled, p.key, false, CASE WHEN l.until > now() THEN l.session END, coalesce(l.waits_due,
           l.until),
       (SELECT count(*) FROM (
            SELECT FROM :schema.parked b WHERE b.queue = p.queue AND b.key = p.key AND (b.due, b.id) < (p.due, p.id)
            ORDER BY b.due, b.id LIMIT $2) c)
FROM :schema.parked p LEFT JOIN :schema.lane l ON l.queue = p.queue AND l.key = p.key
WHERE p.queue = $3 AND p.id = ANY ($1::uuid[])
LIMIT 10000;
