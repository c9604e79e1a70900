-- name: notify
-- Nothing depends on a notification, so its commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), :schema.nudge($1, $2);
