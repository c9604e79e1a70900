-- For each of queues, how many functions of the program do not return: another worker has taken the place of the worker
-- that called it.
ALTER TABLE :schema.session ADD COLUMN left_calls int[] NOT NULL DEFAULT '{}';
