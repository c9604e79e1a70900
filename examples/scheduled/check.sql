-- name: check
-- One line for each manifest: what was expected (the due times $2 of the manifests $1), what ran, and what was done. A
-- run of a follower may answer for several successes, so for those alone there may be fewer runs than due times.
WITH wanted AS (SELECT * FROM unnest($1::text[], $2::timestamptz[]) w(manifest, due)),
ran AS (
    SELECT m.name AS manifest, r.due, count(*) FILTER (WHERE r.state = 'succeeded') AS good, count(*) AS n,
        max(r.attempt) AS attempts, max(r.queued) AS queued
    FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id GROUP BY 1, 2),
done AS (SELECT manifest, due, count(*) AS n FROM effect GROUP BY 1, 2),
faults AS (
    SELECT coalesce(w.manifest, r.manifest, d.manifest) AS manifest, w.due IS NOT NULL AS wanted,
        coalesce(r.n, 0) AS runs, coalesce(r.good, 0) AS good, coalesce(d.n, 0) AS done, r.attempts
    FROM wanted w FULL JOIN ran r ON r.manifest = w.manifest AND r.due = w.due
    FULL JOIN done d ON d.manifest = coalesce(w.manifest, r.manifest) AND d.due = coalesce(w.due, r.due))
SELECT m.name, count(*) FILTER (WHERE f.wanted)::int AS expected, coalesce(sum(f.runs), 0)::int AS runs,
    coalesce(sum(f.good), 0)::int AS succeeded, coalesce(sum(f.done), 0)::int AS effects,
    count(*) FILTER (WHERE f.runs > 1 OR f.done > 1)::int AS doubled,
    count(*) FILTER (WHERE f.wanted AND f.done = 0)::int AS missing,
    count(*) FILTER (WHERE NOT f.wanted)::int AS strange,
    coalesce(sum(f.attempts - 1) FILTER (WHERE f.attempts > 1), 0)::int AS again
FROM :schema.manifest m LEFT JOIN faults f ON f.manifest = m.name
GROUP BY m.name ORDER BY m.name;

-- name: at_once
-- The most runs of the group that were active at a moment: as each began, those that had begun and had not ended.
SELECT coalesce(max(n), 0)::int FROM (
    SELECT (SELECT count(*) FROM :schema.run_attempt b JOIN :schema.run s ON s.id = b.run
            WHERE s.group_id = r.group_id AND b.sent <= a.sent AND (b.ended IS NULL OR b.ended > a.sent)) AS n
    FROM :schema.run_attempt a JOIN :schema.run r ON r.id = a.run
    JOIN :schema.manifest_group g ON g.id = r.group_id WHERE g.name = $1) x;

-- name: too_early
-- Reports that were queued, or written, before the settlement that they tell of had succeeded.
SELECT (SELECT count(*) FROM effect r JOIN effect s ON s.manifest = replace(r.manifest, 'report/', 'settle/')
    AND s.due = r.due
        WHERE r.manifest LIKE 'report/%' AND r.at < s.at)::int
     + (SELECT count(*) FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id
        JOIN :schema.manifest p ON p.name = m.parent JOIN :schema.run s ON s.manifest_id = p.id AND s.due = r.due
        WHERE m.follows AND (s.state <> 'succeeded' OR r.queued < s.ended))::int;
