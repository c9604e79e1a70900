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

-- name: unhandled
-- The kinds of messages that were put back with an error that contains the text $2, of the first $1 messages that are
-- due within a minute, which is the longest that such a message waits.
WITH near AS MATERIALIZED (
    SELECT q.kind, q.first_failed, q.owner, q.last_error FROM :queue q
    WHERE q.due > now() AND q.due <= now() + interval '1 minute' ORDER BY q.due, q.id LIMIT $1)
SELECT s.kind, count(*), min(s.first_failed), (SELECT count(*) FROM near) >= $1 FROM near s
WHERE s.first_failed IS NOT NULL AND s.owner IS NULL AND position($2::text IN s.last_error) > 0
GROUP BY s.kind ORDER BY count(*) DESC, s.kind LIMIT 10;

-- name: estimate_ready
-- The planner's estimate: reltuples of pg_class, scaled to the current size of the table, times the share of rows
-- whose due time is before now according to the statistics.
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due <= now();

-- name: estimate_delayed
EXPLAIN (FORMAT JSON) SELECT FROM :queue q WHERE q.due > now();

-- name: find
-- The rows of one message in a queue, one for each time the queue has it. Reads the whole queue: it has no index of
-- ids. $2 bounds the size of the body.
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

-- name: sought
-- The places of messages in this queue, by their ids. Reads the whole queue: it has no index of ids.
SELECT q.due, q.id, false FROM :queue q WHERE q.id = ANY ($1::uuid[]) LIMIT 10000;

-- name: near
-- The places of messages in this queue, without reading all of it: among the $5 that are due first, among the $5 that
-- are due next, or among the first $4 that are due between $2 and $3. The last column reports whether the queue, or
-- its parked messages, has more rows than were read at its ends.
WITH head AS MATERIALIZED (
    (SELECT q.due, q.id FROM :queue q WHERE q.due <= now() ORDER BY q.due, q.id LIMIT $5)
    UNION ALL
    (SELECT q.due, q.id FROM :queue q WHERE q.due > now() ORDER BY q.due, q.id LIMIT $5)),
read AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE h.due <= now()) >= $5 OR count(*) FILTER (WHERE h.due > now()) >= $5
        OR (SELECT count(*) FROM (SELECT FROM :schema.parked p WHERE p.queue = $6 LIMIT $5) x) >= $5 AS more
    FROM head h)
SELECT x.due, x.id, r.more FROM read r
LEFT JOIN LATERAL (
    SELECT h.due, h.id FROM head h JOIN unnest($1::uuid[]) u(id) ON u.id = h.id
    UNION
    SELECT s.due, s.id FROM unnest($2::timestamptz[], $3::timestamptz[]) t(since, until)
    CROSS JOIN LATERAL (
        SELECT q.due, q.id FROM :queue q WHERE q.due >= t.since AND q.due <= t.until ORDER BY q.due, q.id
        LIMIT $4) s
    JOIN unnest($1::uuid[]) u(id) ON u.id = s.id
    LIMIT 10000) x ON true;

-- name: locate
-- Messages of this queue by their places, with their headers if $4 is true. Counts at most $3 messages before a due
-- one. xmax shows a transaction that has the row locked.
SELECT h.id, h.due, h.sent, h.attempt, h.kind, CASE WHEN $4::boolean THEN h.header END, h.last_error,
       now(), h.was_due, h.cancelled, NULL AS lane, h.owner IS NULL AND :schema.in_hand(h.mark) AS in_hand,
       CASE WHEN h.due > now() THEN h.owner END AS holder, h.due AS until,
       CASE WHEN h.due <= now() THEN (
           SELECT count(*) FROM (
               SELECT FROM :queue b WHERE (b.due, b.id) < (h.due, h.id) ORDER BY b.due, b.id LIMIT $3) c) ELSE 0 END
FROM unnest($1::timestamptz[], $2::uuid[]) u(due, id)
CROSS JOIN LATERAL (
    SELECT q.id, q.due, q.sent, q.attempt, q.kind, q.header, q.last_error, q.was_due, q.cancelled, q.owner,
        q.xmax AS mark
    FROM :queue q WHERE q.due = u.due AND q.id = u.id OFFSET 0) h;

-- name: locate_parked
-- Messages that are parked, of the first $4 of this queue, $3. Counts at most $2 messages of a key before one.
SELECT p.id, p.due, p.sent, p.attempt, p.kind, CASE WHEN cardinality($1::uuid[]) = 1 THEN p.header END, p.last_error,
       now(), NULL, p.cancelled, p.key, false, l.session, coalesce(l.waits_due, l.until),
       (SELECT count(*) FROM (
            SELECT FROM :schema.parked b WHERE b.queue = p.queue AND b.key = p.key AND (b.due, b.id) < (p.due, p.id)
            ORDER BY b.due, b.id LIMIT $2) c)
FROM (SELECT * FROM :schema.parked x WHERE x.queue = $3 ORDER BY x.queue, x.key, x.due, x.id LIMIT $4) p
LEFT JOIN :schema.lane l ON l.queue = p.queue AND l.key = p.key
WHERE p.id = ANY ($1::uuid[])
LIMIT 10000;

-- name: claimed
-- Messages that processes have in hand under a lease, among the first $1 that are due later: a claim moves a message
-- to the end of the lease.
SELECT x.id, x.kind, x.owner FROM (
    SELECT q.id, q.kind, q.owner FROM :queue q WHERE q.due > now() ORDER BY q.due, q.id LIMIT $1) x
WHERE x.owner IS NOT NULL;
