-- Asked to find out what stands between a client and Postgres.

-- name: backend
SELECT pg_backend_pid();
