-- name: add_page
-- The slot is read without a lock. A writer that reads it just before a rotation writes into the previous slot, which
-- is emptied last.
WITH slot AS (SELECT r.slot FROM :schema.ring r WHERE r.name = 'history'),
ranges AS (
    INSERT INTO :schema.history_range (slot, first, last, page)
    SELECT slot.slot, u.first, u.last, $1 FROM slot, unnest($5::uuid[], $6::uuid[]) u(first, last))
INSERT INTO :schema.history (slot, id, endpoint, messages, page)
SELECT slot.slot, $1, $2, $3, $4 FROM slot;

-- name: add_lives
INSERT INTO :schema.history_life (slot, iid, saga, key, outcome, page)
SELECT r.slot, u.iid, u.saga, u.key, u.outcome, u.page
FROM :schema.ring r, unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[]) u(iid, saga, key, outcome, page)
WHERE r.name = 'history';

-- name: pages
SELECT h.id, h.endpoint, h.page, h.at FROM :schema.history h WHERE h.id = ANY($1::uuid[]);

-- name: recent
-- Ids are of version 7, so this is a walk of their index from its end. Only the lengths of large pages are read, not
-- their bytes.
SELECT w.id, w.endpoint, w.page, w.at
FROM (
    SELECT h.*, sum(octet_length(h.page)) OVER (ORDER BY h.id DESC) AS bytes
    FROM (SELECT * FROM :schema.history ORDER BY id DESC LIMIT $1) h
    WHERE octet_length(h.page) <= $2
) w
WHERE w.bytes <= $3;

-- name: find
-- The pages that may contain each id, the newest first. until is id with 100 ms added to its time.
SELECT u.n::int4, r.page
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY u(id, until, n)
CROSS JOIN LATERAL (
    SELECT x.page FROM :schema.history_range x
    WHERE x.last >= u.id AND x.last <= u.until AND x.first <= u.id
    ORDER BY x.page DESC LIMIT $3) r;

-- name: lives
SELECT l.iid, l.saga, l.key, l.ended, l.outcome, l.page FROM :schema.history_life l
WHERE l.saga = $1 AND l.key = $2 ORDER BY l.ended DESC LIMIT $3;

-- name: life
SELECT l.iid, l.saga, l.key, l.ended, l.outcome, l.page FROM :schema.history_life l WHERE l.iid = $1;

-- name: ended_since
-- Counts for each saga up to a limit.
SELECT s.name, (SELECT count(*) FROM (
    SELECT FROM :schema.history_life l
    WHERE l.saga = s.name AND l.ended > now() - $2::bigint * interval '1 microsecond' LIMIT $3) e)::bigint
FROM unnest($1::text[]) s(name);

-- name: ended
SELECT l.iid, l.saga, l.key, l.ended, l.outcome, l.page FROM :schema.history_life l
WHERE l.saga = $1 AND ($2 = '' OR l.outcome = $2) AND (l.ended, l.iid) < ($3, $4)
ORDER BY l.ended DESC, l.iid DESC LIMIT $5;

-- name: each
-- One life of each saga, with one index probe each: a saga may have many lives.
WITH RECURSIVE found AS (
    (SELECT l.* FROM :schema.history_life l ORDER BY l.saga LIMIT 1)
    UNION ALL
    SELECT n.* FROM found f
    CROSS JOIN LATERAL (
        SELECT l.* FROM :schema.history_life l WHERE l.saga > f.saga ORDER BY l.saga LIMIT 1) n)
SELECT f.iid, f.saga, f.key, f.ended, f.outcome, f.page FROM found f LIMIT $1;
