-- name: send
SELECT s.message_id, s.duplicate
FROM :schema.send(kind => $1, body => $2, header => $3::text::json, endpoint => $4, id => $5::uuid,
    due => clock_timestamp() + $6::bigint * interval '1 microsecond') s;

-- name: wake
SELECT :schema.nudge($1, :schema.command_queue($2, $3)::text);
