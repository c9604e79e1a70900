-- Settings of Edda's own transactions.

-- name: open
-- Every statement of a batch reaches its rows by an index probe or a ctid. A plan made while the tables were empty,
-- or before the first ANALYZE, must not choose otherwise. Plans that are switched off count as very expensive, which
-- would make Postgres compile a statement that reads one row: so JIT is off. Generic plans are forced, because
-- Postgres would plan each take anew rather than use a plan that ignores the LIMIT. Returns now(), which is the same
-- in all statements.
SELECT now(), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: open_leased
-- As open, for a leased endpoint. Its transactions hold what other processes need: messages, lanes, the lock of
-- claims. So they never wait for a lock, or stay idle, for longer than $1, or than a stricter setting.
SELECT now(), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('lock_timeout', CASE WHEN l.set::interval BETWEEN interval '1 microsecond' AND $1::text::interval
           THEN l.set ELSE $1::text END, true),
       set_config('idle_in_transaction_session_timeout', CASE WHEN i.set::interval BETWEEN interval '1 microsecond'
           AND $1::text::interval THEN i.set ELSE $1::text END, true)
FROM current_setting('lock_timeout') l(set), current_setting('idle_in_transaction_session_timeout') i(set);

-- name: bound_idle
-- A process that stalls between two statements, or is cut off, keeps its locks as long as its connection lives, which
-- may be hours. So the server ends its transaction, after $1 or a stricter setting.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
WHERE current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 microsecond'
    AND $1::interval;

-- name: lock_timeout
SELECT set_config('lock_timeout', $1, true);
