-- name: planner
SELECT current_setting('enable_seqscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_bitmapscan'), current_setting('jit'),
       current_setting('plan_cache_mode'), pg_backend_pid();

-- name: send
-- Without an id of the caller's the function makes one, and remembers nothing. In a database other than the bus's the
-- CROSS JOIN finds no row, so the function is not called: the call depends on this schema's own row.
SELECT s.message_id::text, s.copies, s.duplicate
FROM :schema.settings here CROSS JOIN LATERAL :schema.send(
    kind => CASE WHEN here.name = 'schema_id' THEN $1::text END, body => $2::bytea, header => $3::json,
        endpoint => $4::text, publish => $5::boolean, id => $6::uuid,
    due => coalesce($7::timestamptz, CASE WHEN $8::bigint > 0
        THEN clock_timestamp() + $8::bigint * interval '1 microsecond' END)) s
WHERE here.name = 'schema_id' AND here.value = $9;

-- name: check_client
-- A client that has vanished must not keep its batch locked until TCP gives up.
SELECT set_config('client_connection_check_interval', '2000', false);
