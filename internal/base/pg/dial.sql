-- name: notice_vanished
-- Makes the server notice within about eleven seconds that the client's machine is gone; otherwise its session and
-- locks would stay for hours. Sets only values that are not set, and only in a session of our own: a pooler's session
-- has a different number.
SELECT set_config(v.name, v.value, false)
FROM (VALUES ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '10000')) v(name, value)
JOIN pg_settings s ON s.name = v.name
WHERE s.source = 'default' AND pg_backend_pid() = $1;
