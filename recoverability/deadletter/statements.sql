-- name: insert
-- died is stamped by the database. Nothing here can fail on data: the row's key is its own, and the
-- caller has made the texts storable.
INSERT INTO :schema.dead_letter
    (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, sent, first_failed)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::int[], $7::int[],
                     $8::text[], $9::text[], $10::timestamptz[], $11::timestamptz[]);

-- name: insert_discarded
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[]);

-- name: insert_one_discarded
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason) VALUES ($1, $2, $3, $4, $5, $6);

-- name: list
-- Three statements instead of one with optional conditions, which a generic plan answers by reading
-- everything. A kind is a filter: it has no index of its own.
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died
FROM :schema.dead_letter
WHERE id > $1 AND ($2 = '' OR kind = $2)
ORDER BY id LIMIT $3;

-- name: list_of_endpoint
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died
FROM :schema.dead_letter
WHERE endpoint = $4 AND id > $1 AND ($2 = '' OR kind = $2)
ORDER BY id LIMIT $3;

-- name: list_of_message
-- One message may have died in several endpoints. MATERIALIZED keeps the plan to the index of message
-- ids, where the order by number would look cheaper to a planner that knows nothing.
WITH m AS MATERIALIZED (
    SELECT id, endpoint, message_id, kind, header, attempts, conflicts, reason, error, sent, first_failed, died
    FROM :schema.dead_letter WHERE message_id = $5::text::uuid)
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died
FROM m
WHERE id > $1 AND ($2 = '' OR kind = $2) AND ($4 = '' OR endpoint = $4)
ORDER BY id LIMIT $3;

-- name: show
SELECT id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died, body
FROM :schema.dead_letter WHERE id = $1;

-- name: take
-- Whoever comes second waits here for the end of the first, and then finds nothing.
DELETE FROM :schema.dead_letter WHERE id = $1
RETURNING id, endpoint, message_id::text, kind, header, attempts, conflicts, reason, error, sent, first_failed, died, body;

-- name: discard
WITH gone AS (
    DELETE FROM :schema.dead_letter WHERE id = $1 RETURNING endpoint, message_id, kind)
INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
SELECT endpoint, message_id, kind, '', '', $2 FROM gone;

-- name: list_discarded
SELECT id, endpoint, message_id::text, kind, saga, key, reason, at
FROM :schema.discarded
WHERE id > $1 AND ($2 = '' OR kind = $2) AND ($4 = '' OR endpoint = $4) AND ($5 = '' OR message_id::text = $5)
ORDER BY id LIMIT $3;

-- name: prune_discarded
DELETE FROM :schema.discarded
WHERE ctid = ANY (ARRAY(
    SELECT x.ctid FROM :schema.discarded x
    WHERE x.at < now() - make_interval(secs => $1)
    ORDER BY x.at LIMIT $2 FOR UPDATE SKIP LOCKED));
