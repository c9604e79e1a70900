-- What became of a message is looked for by its id, also where many messages were discarded.
CREATE INDEX discarded_message_idx ON :schema.discarded (message_id);
