-- Statements that write messages into a queue.

-- name: insert
-- A due that is null means now, by the clock at the insert and not at the transaction's begin.
INSERT INTO :queue (due, id, kind, header, body)
SELECT coalesce(o.due, clock_timestamp()), o.id, o.kind, o.header, o.body
FROM unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[]) o(due, id, kind, header, body);

-- name: insert_again
-- A message that goes back with all its fields; the due time of a retry counts from now.
INSERT INTO :queue (due, id, sent, first_failed, attempt, conflict, kind, header, body, last_error)
SELECT clock_timestamp() + o.delay * interval '1 microsecond', o.id, o.sent, o.first_failed, o.attempt, o.conflict,
    o.kind, o.header, o.body, nullif(o.last_error, '')
FROM unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::text[],
    $8::bytea[], $9::bytea[], $10::text[])
     o(delay, id, sent, first_failed, attempt, conflict, kind, header, body, last_error);

-- name: insert_one
INSERT INTO :queue (due, id, kind, header, body) VALUES (coalesce($1,
    clock_timestamp() + $6::bigint * interval '1 microsecond'), $2, $3, $4, $5);

-- name: insert_in_order
-- Messages that are sent together keep their order: each is due a microsecond after the one before it.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS reading)
INSERT INTO :queue (due, id, kind, header, body)
SELECT clock.reading + o.place * interval '1 microsecond', o.id::uuid, o.kind, o.header, o.body
FROM clock CROSS JOIN unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) WITH ORDINALITY o(id, kind, header,
    body, place);
