-- Queries that detect a pooler between a client and Postgres.

-- name: backend
SELECT pg_backend_pid();
