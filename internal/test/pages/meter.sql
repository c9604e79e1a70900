-- name: forget
SELECT pg_stat_statements_reset();

-- name: buffers
SELECT coalesce(sum(s.shared_blks_hit + s.shared_blks_read), 0)::bigint, coalesce(sum(s.calls), 0)::bigint
FROM pg_stat_statements s WHERE s.toplevel AND s.query NOT LIKE '%pg_stat%';

-- name: statements
SELECT format('%s buffers, %s ms, %s calls: %s', s.shared_blks_hit + s.shared_blks_read,
    round(s.total_exec_time::numeric, 1), s.calls, left(regexp_replace(s.query, '\s+', ' ', 'g'), 100))
FROM pg_stat_statements s WHERE s.query NOT LIKE '%pg_stat%'
ORDER BY s.shared_blks_hit + s.shared_blks_read DESC LIMIT 8;
