-- Settings of a transaction of the framework.

-- name: open
-- Every statement of a batch reaches its rows by an index probe or a ctid. A plan made while the tables were
-- empty, or before the first ANALYZE, must not choose otherwise. What they forbid counts as very expensive, which
-- would make Postgres compile a statement that reads one row: hence no JIT. And hence no plan made anew for each
-- take, which Postgres would prefer to one that does not know the LIMIT. It returns what now() is in all of them.
SELECT now(), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: open_leased
-- As open, for a leased endpoint. Its transactions hold what other processes need: messages, lanes, the lock of claims.
-- So none waits for a lock, or stands still, for longer than $1, or than what is set and stricter.
SELECT now(), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('lock_timeout', CASE WHEN l.set::interval BETWEEN interval '1 microsecond' AND $1::text::interval
           THEN l.set ELSE $1::text END, true),
       set_config('idle_in_transaction_session_timeout', CASE WHEN i.set::interval BETWEEN interval '1 microsecond'
           AND $1::text::interval THEN i.set ELSE $1::text END, true)
FROM current_setting('lock_timeout') l(set), current_setting('idle_in_transaction_session_timeout') i(set);

-- name: bound_idle
-- A process that stands still between two statements, or is cut off, keeps what it has locked from all others for as
-- long as its connection lives, which may be hours. So the server ends its transaction, after $1 or what is stricter.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
WHERE current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 microsecond'
    AND $1::interval;

-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);
