-- name: keep
-- Copies follow each other by a microsecond, so that they are listed and replayed in the order of their relaying.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS reading, (SELECT r.slot FROM :schema.ring r
    WHERE r.name = 'outbox') AS slot)
INSERT INTO :schema.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
SELECT c.slot, o.endpoint, c.reading + o.place * interval '1 microsecond', o.id, o.sent, o.kind, o.header, o.body
FROM clock c CROSS JOIN unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::text[], $5::bytea[], $6::bytea[])
     WITH ORDINALITY o(endpoint, id, sent, kind, header, body, place);

-- name: list_kept
-- Reads $6 copies of the endpoint, whatever the kind selects of them, and fewer if their headers have more than $7
-- bytes together; the list continues after the last of them.
WITH seen AS MATERIALIZED (
    SELECT o.relayed, o.id, o.sent, o.kind, o.header, octet_length(o.body) AS size
    FROM :schema.outbox o
    WHERE o.endpoint = $1 AND (o.relayed, o.id) > ($2::timestamptz, $3::uuid) AND o.relayed < $4::timestamptz
    ORDER BY o.relayed, o.id LIMIT $6),
weighed AS (
    SELECT s.*, sum(octet_length(s.kind) + octet_length(s.header)) OVER upto AS bytes, row_number() OVER upto AS place
        FROM seen s
    WINDOW upto AS (ORDER BY s.relayed, s.id ROWS UNBOUNDED PRECEDING))
SELECT w.relayed, w.id, w.sent, w.kind, w.header, w.size, $5 = '' OR w.kind = $5, (SELECT count(*) FROM seen)
FROM weighed w WHERE w.bytes <= $7::bigint OR w.place = 1 ORDER BY w.relayed, w.id;

-- name: show_kept
SELECT o.endpoint, o.relayed, o.id, o.sent, o.kind, o.header, o.body
FROM :schema.outbox o WHERE o.id = $1 ORDER BY o.relayed LIMIT $2;

-- name: kept_bodies
SELECT k.place, b.body
FROM unnest($2::timestamptz[], $3::uuid[]) WITH ORDINALITY k(relayed, id, place)
CROSS JOIN LATERAL (SELECT o.body FROM :schema.outbox o WHERE o.endpoint = $1 AND o.relayed = k.relayed
    AND o.id = k.id LIMIT 1) b;

-- name: kept_of
SELECT o.endpoint, o.relayed, o.id, o.kind, octet_length(o.body)
FROM :schema.outbox o WHERE o.id = ANY ($1::uuid[]) ORDER BY o.relayed LIMIT $2;
