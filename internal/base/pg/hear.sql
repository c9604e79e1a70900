-- Sent by a listener that has received nothing for a while.

-- name: still_there
SELECT 1;
