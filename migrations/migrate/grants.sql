-- What three roles may do in a schema, beside its owner. Rights that are there already stay as they are, and rights
-- that are too many are taken back, so the script may be run again, and is, after each migration.
-- name: begin
BEGIN;
REVOKE ALL ON SCHEMA :schema FROM PUBLIC;

-- name: runtime
-- :role runs endpoints. It may change messages and instances, and not a single table. UPDATE on a queue is
-- there because Postgres asks for it where rows are locked.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE CREATE ON SCHEMA :schema FROM :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :schema TO :role;
REVOKE INSERT, UPDATE, DELETE ON :schema.migration, :schema.settings, :schema.queue FROM :role;
REVOKE INSERT, DELETE ON :schema.subscription_generation FROM :role;
REVOKE UPDATE ON :schema.subscription, :schema.dead_letter, :schema.parked FROM :role;
-- A row that was deleted and came back would begin its epochs anew.
REVOKE DELETE ON :schema.lease, :schema.concurrency_limit FROM :role;
REVOKE DELETE ON :schema.knob FROM :role;
REVOKE UPDATE, DELETE ON :schema.dead_letter_edit FROM :role;
-- No row of a ring is deleted: a turn empties a slot, which needs TRUNCATE on it and no right to create anything.
REVOKE UPDATE, DELETE ON :schema.inbox, :schema.inbox_0, :schema.inbox_1, :schema.inbox_2, :schema.inbox_3,
    :schema.outbox, :schema.outbox_0, :schema.outbox_1, :schema.outbox_2, :schema.outbox_3 FROM :role;
REVOKE INSERT, DELETE ON :schema.ring FROM :role;
GRANT TRUNCATE ON :schema.inbox_0, :schema.inbox_1, :schema.inbox_2, :schema.inbox_3,
    :schema.outbox_0, :schema.outbox_1, :schema.outbox_2, :schema.outbox_3 TO :role;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :schema TO :role;
-- The same for queues that are installed later, by whoever runs this script now.
ALTER DEFAULT PRIVILEGES IN SCHEMA :schema GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA :schema GRANT EXECUTE ON FUNCTIONS TO :role;

-- name: sender
-- :role sends, from Go or by the function send, and can neither read a message nor take one back. INSERT is for the
-- queues and sent_id. UPDATE of the one column is for publishing in REPEATABLE READ, where the row is locked.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE CREATE ON SCHEMA :schema FROM :role;
REVOKE ALL ON ALL TABLES IN SCHEMA :schema FROM :role;
GRANT INSERT ON ALL TABLES IN SCHEMA :schema TO :role;
REVOKE INSERT ON :schema.migration, :schema.settings, :schema.queue, :schema.subscription, :schema.subscription_generation,
    :schema.saga, :schema.dead_letter, :schema.discarded, :schema.lane, :schema.parked, :schema.lease, :schema.concurrency_limit, :schema.slot, :schema.ticket, :schema.saga_counter, :schema.knob, :schema.dead_letter_job, :schema.dead_letter_edit, :schema.session, :schema.crash_batch, :schema.crash_ledger,
    :schema.manifest_group, :schema.manifest, :schema.run, :schema.run_attempt, :schema.ring,
    :schema.inbox, :schema.inbox_0, :schema.inbox_1, :schema.inbox_2, :schema.inbox_3,
    :schema.outbox, :schema.outbox_0, :schema.outbox_1, :schema.outbox_2, :schema.outbox_3 FROM :role;
GRANT SELECT ON :schema.migration, :schema.settings, :schema.queue, :schema.subscription, :schema.subscription_generation, :schema.sent_id TO :role;
GRANT UPDATE (one) ON :schema.subscription_generation TO :role;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :schema TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA :schema GRANT INSERT ON TABLES TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA :schema GRANT EXECUTE ON FUNCTIONS TO :role;

-- name: reader
-- :role looks: edda queue, saga and dead list, metrics, dashboards. It sees bodies and states.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE CREATE ON SCHEMA :schema FROM :role;
REVOKE ALL ON ALL TABLES IN SCHEMA :schema FROM :role;
GRANT SELECT ON ALL TABLES IN SCHEMA :schema TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA :schema GRANT SELECT ON TABLES TO :role;

-- name: end
COMMIT;
