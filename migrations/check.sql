-- One row for each applied migration. A program learns three things from it: how far the schema is,
-- whether all that the program knows is applied, and the newest change that is breaking for it.
-- name: check
SELECT coalesce(max(version), 0),
       count(*) FILTER (WHERE version <= $1),
       coalesce(max(version) FILTER (WHERE version > $1 AND breaking), 0)
FROM :schema.migration
