-- Connections that roles without superuser may open. reserved_connections came with PostgreSQL 16.
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
     - coalesce(current_setting('reserved_connections', true), '0')::int;
