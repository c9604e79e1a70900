-- One row: the version of the schema, the number of the program's migrations that are applied, and the newest
-- migration that is breaking for the program.
-- name: check
SELECT coalesce(max(version), 0),
       count(*) FILTER (WHERE version <= $1),
       coalesce(max(version) FILTER (WHERE version > $1 AND breaking), 0)
FROM :schema.migration
