-- name: add
INSERT INTO :schema.audit (actor, origin, verb, target, reason, before, after)
VALUES ($1, coalesce(nullif($2, ''), current_setting('application_name')), $3, $4, $5, $6, $7);

-- name: tell
-- For SQL functions that write entries themselves.
SELECT set_config('edda.actor', $1, true), set_config('edda.origin', $2, true), set_config('edda.reason', $3, true);

-- name: list
-- The newest first. The table grows slowly, so each filter is applied to the rows that the page walks over.
SELECT a.number, a.at, a.actor, a.role, a.origin, a.verb, a.target, a.reason, a.before, a.after
FROM :schema.audit a
WHERE ($1::bigint = 0 OR a.number < $1) AND ($2::timestamptz IS NULL OR a.at >= $2)
  AND ($3::timestamptz IS NULL OR a.at < $3) AND ($4 = '' OR a.actor = $4 OR a.actor = '' AND a.role = $4)
  AND ($5 = '' OR a.verb = $5 OR starts_with(a.verb, $5 || '.')) AND ($6 = '' OR a.target = $6)
ORDER BY a.number DESC LIMIT $7;

-- name: newest
-- One probe of audit_target_idx for each target, if that has no entries of other verbs.
SELECT n.number, n.at, n.actor, n.role, n.origin, n.verb, n.target, n.reason, n.before, n.after
FROM unnest($2::text[]) AS t (target) CROSS JOIN LATERAL (
    SELECT a.* FROM :schema.audit a WHERE a.target = t.target AND a.verb = $1 ORDER BY a.number DESC LIMIT 1) n;

-- name: prune
DELETE FROM :schema.audit a WHERE a.number IN (
    SELECT o.number FROM :schema.audit o WHERE o.at < now() - $1 * interval '1 second' ORDER BY o.at LIMIT $2);
