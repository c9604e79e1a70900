-- Names without a schema are our own, found by the search_path; :schema is the engine's.

-- name: effect
INSERT INTO effect (manifest, due) VALUES ($1, $2);

-- name: report
INSERT INTO effect (manifest, due)
SELECT $1, s.due FROM effect s
WHERE s.manifest = $2 AND s.due <= $3 AND NOT EXISTS (SELECT FROM effect r WHERE r.manifest = $1 AND r.due = s.due);

-- name: now
SELECT clock_timestamp();

-- name: working
-- Settlements that are at work: there is something to lose.
SELECT count(*) FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id
WHERE r.state = 'active' AND m.name LIKE 'settle/%';

-- name: left_open
-- What is still to come: a due time or a run of any manifest but the one that is held. Bookkeeping of one snapshot.
SELECT (SELECT count(*) FROM :schema.manifest m WHERE m.held IS NULL AND (m.due IS NOT NULL OR m.run IS NOT NULL))
     + (SELECT count(*) FROM :schema.run r WHERE r.state IN ('waiting', 'queued', 'active'));
