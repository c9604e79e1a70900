-- name: run_check
SELECT :schema.run_check($1::uuid[], $2::int[], $3::text);

-- name: run_beat
SELECT :schema.run_beat($1::uuid[], $2::int[]);

-- name: run_rest
SELECT :schema.run_rest($1::uuid[], $2::int[]);

-- name: run_end
-- $5 are the positions of the runs that this transaction has locked since they were checked. If any is not current
-- all the same, nothing commits.
SELECT :schema.expect($5::int[] <@ e.ended, 'a run that was held has ended')
FROM (SELECT :schema.run_end($1::uuid[], $2::int[], $3::text[], $4::text[]) AS ended) e;
