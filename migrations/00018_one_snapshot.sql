-- still_queued reads with the snapshot of the statement that calls it, as queue_depths does. A message that died
-- between two snapshots was in no queue, and not yet a dead letter: a canary took it for handled.
ALTER FUNCTION :schema.still_queued(text, uuid[], timestamptz) STABLE;
