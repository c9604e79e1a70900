-- One row for each applied migration. It has three things for a program: the version of the schema, whether every
-- migration that the program knows is applied, and the newest one that is breaking for it.
-- name: check
SELECT coalesce(max(version), 0),
       count(*) FILTER (WHERE version <= $1),
       coalesce(max(version) FILTER (WHERE version > $1 AND breaking), 0)
FROM :schema.migration
