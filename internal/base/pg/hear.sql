-- Asked by a listener that has heard nothing for a while.

-- name: still_there
SELECT 1;
