-- name: bound_idle
-- If a process freezes in the middle of a guarded write, no other replica can begin its term for as long as that
-- process's connection lives. So the server ends the transaction after $1, or earlier if the session's limit is
-- stricter.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
WHERE current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 microsecond'
    AND $1::interval;
