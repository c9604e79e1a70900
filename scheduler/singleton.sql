-- name: bound_idle
-- A process that is frozen in the middle of a protected write would keep every other replica from beginning its term,
-- for as long as its connection lives. So the server ends its transaction, after $1 or what is stricter.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
WHERE current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 microsecond'
    AND $1::interval;
