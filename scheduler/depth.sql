-- name: depth
-- Counts end at $1, and each reads a partial index of open runs, so that this costs the same beside millions of runs
-- that ended. The first due manifest is the head of the index that evaluation reads.
SELECT coalesce((SELECT extract(epoch FROM clock_timestamp() - m.due)::float8 FROM :schema.manifest m
                 WHERE m.live AND m.run IS NULL AND m.held IS NULL AND m.due <= clock_timestamp() ORDER BY m.due,
                     m.id LIMIT 1), 0),
       coalesce(extract(epoch FROM clock_timestamp() - q.first)::float8, 0), q.n,
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'waiting' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'active' LIMIT $1) x),
       (SELECT count(*) FROM (SELECT FROM :schema.run r WHERE r.state = 'dead' LIMIT $1) x)
FROM (SELECT count(*) AS n, min(x.ready) AS first FROM (SELECT r.ready FROM :schema.run r
    WHERE r.state = 'queued' LIMIT $1) x) q;
