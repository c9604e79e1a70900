-- The rights of three roles on Edda's tables and functions, besides the schema's owner. The script gives each role
-- exactly the rights listed here and revokes all others, so it may be run again, and must be after each migration. It
-- names each table and function, because the schema may contain others. It changes neither those nor, except USAGE,
-- the rights on the schema itself.
-- name: begin
BEGIN;
-- From here on create_queue waits, and then it finds the roles and gives them their rights on the new queue.
LOCK TABLE :schema.queue IN SHARE ROW EXCLUSIVE MODE;

-- name: runtime
-- :role runs endpoints. It may change messages and instances, but no table's definition. UPDATE on a queue is
-- included because Postgres requires it for row locks.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE ALL ON :tables FROM :role;
GRANT SELECT ON :tables TO :role;
GRANT INSERT, UPDATE, DELETE ON :schema.saga, :schema.record, :schema.discarded, :schema.sent_id, :schema.lane,
    :schema.slot, :schema.ticket,
    :schema.saga_counter, :schema.dead_letter_job, :schema.session, :schema.in_flight, :schema.suspect,
    :schema.manifest_group, :schema.manifest, :schema.manifest_release, :schema.manifest_program, :schema.run,
    :schema.run_attempt TO :role;
GRANT INSERT, DELETE ON :schema.subscription, :schema.dead_letter, :schema.dead_letter_sent, :schema.saga_item,
    :schema.audit TO :role;
GRANT INSERT, UPDATE, DELETE ON :schema.parked TO :role; -- UPDATE for its row locks
-- No DELETE: a row that was deleted and inserted again would begin its epochs anew.
GRANT INSERT, UPDATE ON :schema.lease, :schema.concurrency_limit, :schema.endpoint_setting TO :role;
GRANT INSERT ON :schema.dead_letter_edit, :schema.inbox, :schema.outbox,
    :schema.history, :schema.history_range, :schema.history_life TO :role;
GRANT UPDATE ON :schema.subscription_generation, :schema.ring TO :role;
-- Rows of a ring are not deleted: its rotation truncates a slot, which needs TRUNCATE and no right to create objects.
GRANT INSERT, TRUNCATE ON :schema.inbox_0, :schema.inbox_1, :schema.inbox_2, :schema.inbox_3,
    :schema.outbox_0, :schema.outbox_1, :schema.outbox_2, :schema.outbox_3,
    :schema.history_0, :schema.history_1, :schema.history_2, :schema.history_3,
    :schema.history_range_0, :schema.history_range_1, :schema.history_range_2, :schema.history_range_3,
    :schema.history_life_0, :schema.history_life_1, :schema.history_life_2, :schema.history_life_3 TO :role;
GRANT EXECUTE ON FUNCTION :schema.expect(boolean, text), :schema.create_queue(text), :schema.in_hand(xid),
    :schema.channel(),
    :schema.check_message(text, bytea, json, uuid, timestamptz), :schema.command_queue(text, text),
        :schema.event_queues(text),
    :schema.remember_id(uuid, bytea), :schema.send(text, bytea, json, text, boolean, uuid, timestamptz),
        :schema.send_all(text, json, text), :schema.nudge(text, text),
    :schema.take(text, int), :schema.done(text, tid[], uuid[]), :schema.inbox_id(text, text), :schema.received(text,
        text),
    :schema.rotate_ring(text), :schema.ring_tables(text, int), :schema.ring_bytes(text, int),
    :schema.adjust_slots(text), :schema.set_limit(text, int, boolean),
        :schema.is_queued(int, timestamptz, uuid), :schema.queue_depths(int[], bigint),
    :schema.queues_of(text), :schema.stage_fates(text, uuid[], timestamptz, boolean),
        :schema.unsend(text, uuid, timestamptz, timestamptz),
    :schema.session_died(uuid, boolean), :schema.manifest_live(boolean, timestamptz, timestamptz, int),
        :schema.manifest_lock(bigint[]),
    :schema.run_check(uuid[], int[], text), :schema.run_beat(uuid[], int[]), :schema.run_rest(uuid[], int[]),
    :schema.run_end(uuid[], int[], text[], text[]), :schema.run_left(uuid[]) TO :role;
INSERT INTO :schema.settings (name, value) VALUES ('role/' || :'role', 'runtime')
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: sender
-- :role sends, from Go or by the function send, and can neither read a message nor delete one. INSERT is for
-- the queues and sent_id. UPDATE of the one column is for publishing in REPEATABLE READ, which locks the row.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE ALL ON :tables FROM :role;
GRANT SELECT ON :schema.migration, :schema.settings, :schema.queue, :schema.subscription,
    :schema.subscription_generation, :schema.sent_id TO :role;
GRANT INSERT ON :schema.sent_id TO :role;
GRANT UPDATE (one) ON :schema.subscription_generation TO :role;
GRANT EXECUTE ON FUNCTION :schema.expect(boolean, text), :schema.check_message(text, bytea, json, uuid, timestamptz),
    :schema.command_queue(text, text), :schema.event_queues(text), :schema.remember_id(uuid, bytea),
    :schema.send(text, bytea, json, text, boolean, uuid, timestamptz), :schema.send_all(text, json, text),
        :schema.nudge(text, text) TO :role;
INSERT INTO :schema.settings (name, value) VALUES ('role/' || :'role', 'sender')
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: reader
-- :role reads, for edda queue, saga and dead list, metrics and dashboards. It can read bodies and states.
GRANT USAGE ON SCHEMA :schema TO :role;
REVOKE ALL ON :tables FROM :role;
GRANT SELECT ON :tables TO :role;
GRANT EXECUTE ON FUNCTION :schema.in_hand(xid), :schema.queue_depths(int[], bigint), :schema.is_queued(int,
    timestamptz, uuid),
    :schema.manifest_live(boolean, timestamptz, timestamptz, int), :schema.ring_tables(text, int),
    :schema.ring_bytes(text, int) TO :role;
INSERT INTO :schema.settings (name, value) VALUES ('role/' || :'role', 'reader')
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: tables
:schema.migration, :schema.settings, :schema.queue, :schema.subscription, :schema.subscription_generation,
    :schema.saga, :schema.record, :schema.dead_letter, :schema.dead_letter_job, :schema.dead_letter_edit,
    :schema.dead_letter_sent, :schema.saga_item, :schema.discarded, :schema.sent_id,
    :schema.lane, :schema.parked, :schema.lease, :schema.concurrency_limit, :schema.slot, :schema.ticket,
        :schema.saga_counter,
    :schema.audit, :schema.endpoint_setting, :schema.session, :schema.in_flight, :schema.suspect,
    :schema.manifest_group, :schema.manifest, :schema.manifest_release, :schema.manifest_program, :schema.run,
    :schema.run_attempt, :schema.ring,
    :schema.inbox, :schema.inbox_0, :schema.inbox_1, :schema.inbox_2, :schema.inbox_3,
    :schema.outbox, :schema.outbox_0, :schema.outbox_1, :schema.outbox_2, :schema.outbox_3,
    :schema.history, :schema.history_0, :schema.history_1, :schema.history_2, :schema.history_3,
    :schema.history_range, :schema.history_range_0, :schema.history_range_1, :schema.history_range_2,
    :schema.history_range_3,
    :schema.history_life, :schema.history_life_0, :schema.history_life_1, :schema.history_life_2,
    :schema.history_life_3

-- name: end
-- The existing queues.
DO $queues$ BEGIN
    PERFORM :schema.grant_queue(q.id) FROM :schema.queue q WHERE to_regclass(format('%I.queue_%s', :'schema',
        q.id)) IS NOT NULL;
END $queues$;
COMMIT;
