-- A queue is made by the programs, under the search_path of their sessions: see search_path in migrate.sql.
ALTER FUNCTION :schema.create_queue(text) SET search_path = pg_catalog, pg_temp;
