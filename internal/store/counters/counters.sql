-- Statements of the counters. Endpoints add to the table and tools read it; nothing depends on it.

-- name: before_counting
-- Nothing depends on a counter, so its commit need not wait for the disk. If the row is locked, the numbers of ten
-- seconds are not worth a wait.
SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1000', true);

-- name: add_counters
-- Every process adds the rows of one endpoint in the order of its sagas, so that two processes cannot deadlock. The
-- counts of a minute are those written in it, which were counted up to ten seconds before; 0 is stored as NULL, which
-- takes no room.
INSERT INTO :schema.saga_counter AS c (
    hour, endpoint, saga, store, concurrency, batch_max, first, last,
    taken, steps, retries, discarded, dead, dead_conflicts, conflicts, busy, queued, batches, instances, writes, starts,
    lost, lost_starts, state_bytes, waits, wait_timeouts, turns, handler_us, critical_us, batch_us, wait_us, turn_us,
    minute_steps, minute_retries, minute_dead)
SELECT date_trunc('hour', now(), 'UTC'), $1, $2, $3, $4, $5, now() - $6::bigint * interval '1 microsecond', now(),
    $7, $8::bigint, $9::bigint, $10, $11::bigint, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
    $26, $27, $28, $29, $30,
    array_fill(nullif(least($8::bigint, m.most), 0)::int, ARRAY[1], m.minute),
    array_fill(nullif(least($9::bigint, m.most), 0)::int, ARRAY[1], m.minute),
    array_fill(nullif(least($11::bigint, m.most), 0)::int, ARRAY[1], m.minute)
FROM (SELECT ARRAY[extract(minute FROM now() AT TIME ZONE 'UTC')::int], 2147483647) m(minute, most)
ON CONFLICT ON CONSTRAINT saga_counter_pkey DO UPDATE SET
    store = excluded.store, concurrency = excluded.concurrency, batch_max = excluded.batch_max,
    first = least(c.first, excluded.first), last = greatest(c.last, excluded.last),
    taken = c.taken + excluded.taken, steps = c.steps + excluded.steps, retries = c.retries + excluded.retries,
    discarded = c.discarded + excluded.discarded, dead = c.dead + excluded.dead,
    dead_conflicts = c.dead_conflicts + excluded.dead_conflicts, conflicts = c.conflicts + excluded.conflicts,
    busy = c.busy + excluded.busy, queued = c.queued + excluded.queued, batches = c.batches + excluded.batches,
    instances = c.instances + excluded.instances, writes = c.writes + excluded.writes,
        starts = c.starts + excluded.starts,
    lost = c.lost + excluded.lost, lost_starts = c.lost_starts + excluded.lost_starts,
    state_bytes = c.state_bytes + excluded.state_bytes, waits = c.waits + excluded.waits,
    wait_timeouts = c.wait_timeouts + excluded.wait_timeouts, turns = c.turns + excluded.turns,
    handler_us = c.handler_us + excluded.handler_us, critical_us = c.critical_us + excluded.critical_us,
    batch_us = c.batch_us + excluded.batch_us, wait_us = c.wait_us + excluded.wait_us,
        turn_us = c.turn_us + excluded.turn_us,
    minute_steps[array_lower(excluded.minute_steps, 1)] = nullif(least(
        coalesce(c.minute_steps[array_lower(excluded.minute_steps, 1)], 0)::bigint + excluded.steps, 2147483647), 0),
    minute_retries[array_lower(excluded.minute_retries, 1)] = nullif(least(
        coalesce(c.minute_retries[array_lower(excluded.minute_retries, 1)], 0)::bigint + excluded.retries,
        2147483647), 0),
    minute_dead[array_lower(excluded.minute_dead, 1)] = nullif(least(
        coalesce(c.minute_dead[array_lower(excluded.minute_dead, 1)], 0)::bigint + excluded.dead, 2147483647), 0);

-- name: read_counters
-- The numbers of the hours that end within the period or after it. store and the columns beside it come from the
-- newest hour.
SELECT endpoint, saga,
       (array_agg(store ORDER BY hour DESC))[1], (array_agg(concurrency ORDER BY hour DESC))[1], (array_agg(batch_max
           ORDER BY hour DESC))[1],
       min(first), max(last),
       ARRAY[sum(taken), sum(steps), sum(retries), sum(discarded), sum(dead), sum(dead_conflicts), sum(conflicts),
           sum(busy),
             sum(queued), sum(batches), sum(instances), sum(writes), sum(starts), sum(lost), sum(lost_starts),
                 sum(state_bytes),
             sum(waits), sum(wait_timeouts), sum(turns), sum(handler_us), sum(critical_us), sum(batch_us),
                 sum(wait_us), sum(turn_us)]::bigint[]
FROM :schema.saga_counter
WHERE hour > now() - $1::bigint * interval '1 microsecond' - interval '1 hour'
GROUP BY endpoint, saga
ORDER BY endpoint, saga;

-- name: read_hours
-- The same by the hour, without the other numbers. The current hour and the one before have their minutes.
SELECT c.hour, c.endpoint, c.saga, c.steps, c.starts, c.first, now(),
    CASE WHEN c.hour > now() - interval '2 hours' THEN ARRAY(
        SELECT coalesce(c.minute_steps[n], 0) FROM generate_series(0, 59) n ORDER BY n) END,
    CASE WHEN c.hour > now() - interval '2 hours' THEN ARRAY(
        SELECT coalesce(c.minute_retries[n], 0) FROM generate_series(0, 59) n ORDER BY n) END,
    CASE WHEN c.hour > now() - interval '2 hours' THEN ARRAY(
        SELECT coalesce(c.minute_dead[n], 0) FROM generate_series(0, 59) n ORDER BY n) END
FROM :schema.saga_counter c
WHERE c.hour > now() - $1::bigint * interval '1 microsecond' - interval '1 hour'
ORDER BY c.hour, c.endpoint, c.saga;

-- name: prune_counters
DELETE FROM :schema.saga_counter
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM :schema.saga_counter c
    WHERE c.hour < now() - make_interval(secs => $1)
    ORDER BY c.hour LIMIT $2 FOR UPDATE SKIP LOCKED));
