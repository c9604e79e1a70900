-- name: fill_relay
-- Messages of 200 bytes with ascending due times, as if they had been sent one by one some minutes ago.
INSERT INTO :schema.queue_1 (due, id, kind, header, body)
SELECT now() - interval '10 minutes' + m.n * interval '10 microseconds', m.id, 'order.charge',
       convert_to(format('{"correlation":"%s","conversation":"%s"}', m.id, m.id), 'UTF8'),
       convert_to(rpad(format('{"seq":%s,"note":"', m.n), 198, 'x') || '"}', 'UTF8')
  FROM (SELECT n, gen_random_uuid() AS id FROM generate_series(1, $1::int) n) m;

-- name: left
SELECT (SELECT count(*) FROM :schema.queue_1) + (SELECT count(*) FROM :schema.dead_letter) + (SELECT count(*)
    FROM :schema.discarded);
