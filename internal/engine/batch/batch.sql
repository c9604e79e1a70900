-- name: plain_planner
-- A user's handler runs under the planner settings of its session.
SELECT set_config('enable_seqscan', $1, true), set_config('enable_hashjoin', $2, true),
       set_config('enable_mergejoin', $3, true), set_config('enable_bitmapscan', $4, true), set_config('jit', $5, true),
       set_config('plan_cache_mode', $6, true);

-- name: lent_settings
-- The session's values of these settings, without a setting that this server's version does not have.
SELECT array_agg(n.name ORDER BY n.place), array_agg(current_setting(n.name, true) ORDER BY n.place)
FROM unnest($1::text[]) WITH ORDINALITY n(name, place) WHERE current_setting(n.name, true) IS NOT NULL;

-- name: take_back
-- Sets the values for the transaction ($3), or for the session, which covers the transaction too, if a handler may
-- have changed the session: a pooler gives the session to other clients. The lock_timeout that the batch itself has
-- set ($4) is not a handler's change. The settings of role and rights come first.
SELECT set_config(s.name, s.value, $3) FROM unnest($1::text[], $2::text[]) s(name, value)
WHERE current_setting(s.name) IS DISTINCT FROM s.value AND NOT (s.name = 'lock_timeout'
    AND current_setting(s.name) = $4);

-- name: xact
SELECT coalesce(pg_current_xact_id_if_assigned()::text, '');
