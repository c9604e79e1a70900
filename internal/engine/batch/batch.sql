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

-- name: xact
SELECT pg_current_xact_id_if_assigned()::text;
