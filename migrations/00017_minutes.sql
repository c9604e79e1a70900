-- What was handled in each minute of an hour, beside the sums of the hour. The bounds of an array are minutes, 0 to 59;
-- a minute in which nothing was added is NULL, or outside of the bounds.
ALTER TABLE :schema.saga_counter
    ADD COLUMN minute_steps   int[],
    ADD COLUMN minute_retries int[],
    ADD COLUMN minute_dead    int[];
