-- Rows are added and deleted, and never updated. A second addition of a key waits for the first, and adds nothing.

-- name: item_add
INSERT INTO :schema.saga_item (collection, collected_for, item_key, size, item_value)
VALUES ($1, $2, $3, octet_length($4::text), $4::text::json)
ON CONFLICT ON CONSTRAINT saga_item_pkey DO NOTHING;

-- name: item_add_all
-- Numbers are assigned in the order of the arrays.
INSERT INTO :schema.saga_item (collection, collected_for, item_key, size, item_value)
SELECT $1, $2, n.item_key, octet_length(n.item_value), n.item_value::json
FROM unnest($3::text[], $4::text[]) WITH ORDINALITY n(item_key, item_value, place) ORDER BY n.place
ON CONFLICT ON CONSTRAINT saga_item_pkey DO NOTHING;

-- name: item_count
SELECT count(*) FROM :schema.saga_item i WHERE i.collection = $1 AND i.collected_for = $2;

-- name: item_page
-- At most $4 items after the number $3, but no item that begins after $5 bytes of values. Only their values are read.
-- The last column is the number of items before the limit in bytes is applied.
SELECT p.item_key, p.number, p.added, p.item_value, p.near
FROM (
    SELECT n.item_key, n.number, n.added, n.item_value, count(*) OVER () AS near,
           sum(n.size) OVER (ORDER BY n.number ROWS UNBOUNDED PRECEDING) - n.size AS ahead
    FROM (
        SELECT i.item_key, i.number, i.added, i.size, i.item_value
        FROM :schema.saga_item i
        WHERE i.collection = $1 AND i.collected_for = $2 AND i.number > $3
        ORDER BY i.number LIMIT $4) n) p
WHERE p.ahead < $5::bigint
ORDER BY p.number;

-- name: item_clear
DELETE FROM :schema.saga_item i WHERE i.collection = $1 AND i.collected_for = $2;
