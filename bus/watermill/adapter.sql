-- name: create_queue
SELECT :schema.create_queue($1::text);

-- name: send_all
SELECT :schema.send_all($1::text, $2::text::json, $3::text);

-- name: take
SELECT t.place, t.claim::text, t.message_id::text, t.kind, t.header, t.body
FROM :schema.take($1::text, $2::int) WITH ORDINALITY t(claim, message_id, kind, header, body, sent, place);

-- name: done
-- The arrays are text, because drivers disagree on how an array is passed.
SELECT :schema.done($1::text, $2::text::tid[], $3::text::uuid[]);
