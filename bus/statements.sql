-- name: plain_planner
-- A user's handler runs under the planner settings of its session.
SELECT set_config('enable_seqscan', $1, true), set_config('enable_hashjoin', $2, true),
       set_config('enable_mergejoin', $3, true), set_config('enable_bitmapscan', $4, true), set_config('jit', $5, true),
       set_config('plan_cache_mode', $6, true);

-- name: lent_settings
-- What a session has of these settings; a server that is too old for one of them leaves it out.
SELECT array_agg(n.name ORDER BY n.place), array_agg(current_setting(n.name, true) ORDER BY n.place)
FROM unnest($1::text[]) WITH ORDINALITY n(name, place) WHERE current_setting(n.name, true) IS NOT NULL;

-- name: take_back
-- For the transaction ($3), or for the session and so for both, where a handler may have set that: a pooler gives the
-- session to others. The lock_timeout that the batch itself has set ($4) is no handler's. Whose rights the session has
-- comes first.
SELECT set_config(s.name, s.value, $3) FROM unnest($1::text[], $2::text[]) s(name, value)
WHERE current_setting(s.name) IS DISTINCT FROM s.value AND NOT (s.name = 'lock_timeout'
    AND current_setting(s.name) = $4);

-- name: planner
SELECT current_setting('enable_seqscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_bitmapscan'), current_setting('jit'),
       current_setting('plan_cache_mode'), pg_backend_pid();

-- name: xact
SELECT pg_current_xact_id_if_assigned()::text;

-- name: send
-- Without an id of the caller's the function makes one, and remembers nothing. In another database than the bus's there
-- is no row here, so nothing is called: the function depends on this schema's own row.
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
