-- Times are clock_timestamp(), the database's clock when a statement reads a row. A slot is free if it is enabled, is
-- not held or its holder's lease is over, and no transaction has it locked. Statements that wait for the locks of
-- several slots wait in the order of (name, no); all others skip locked rows.
--
-- "= ANY (ARRAY[x])" is "= x" in a form that keeps the planner from joining whole tables: see
-- internal/engine/dispatch/statements.sql.

-- name: grant
-- Without a limit, this is one probe of an index and returns no row; otherwise it returns at least one. Earlier
-- holders in the line are served first, and each of the others gets one slot before we get a second. Slots held
-- beyond a lowered limit count as taken. The counts come from a snapshot, and decide who may try; the lock of a row
-- decides who gets the slot. While some slots drain, an equal number of free slots has to stay free: a request locks
-- these as well, and takes only slots beyond them. So of two requests at the same moment at most one gets the last
-- slot. The epoch is above the epochs of all slots of the limit: with a limit of 1 it grows with each grant, even if
-- the limit was larger in between and a different slot remained.
WITH lim AS MATERIALIZED (
    SELECT l.name, l.epoch FROM :schema.concurrency_limit l WHERE l.name = $1
), line AS MATERIALIZED (
    SELECT count(*) AS others,
           count(*) FILTER (WHERE t.number < coalesce((SELECT m.number FROM :schema.ticket m WHERE m.name = $1
               AND m.holder = $2), t.number + 1)) AS before
    FROM lim JOIN :schema.ticket t ON t.name = ANY (ARRAY[lim.name])
    WHERE t.holder <> $2 AND t.expires > clock_timestamp()
), room AS MATERIALIZED (
    SELECT c.free - c.draining AS free, c.draining, c.newest FROM (
        SELECT greatest(max(s.epoch), max(lim.epoch)) AS newest,
               count(*) FILTER (WHERE s.enabled AND (s.holder IS NULL OR s.expires <= clock_timestamp())
            AND NOT :schema.in_hand(s.xmax)) AS free,
               count(*) FILTER (WHERE NOT s.enabled AND s.holder IS NOT NULL AND (s.expires > clock_timestamp()
                   OR :schema.in_hand(s.xmax))) AS draining
        FROM lim JOIN :schema.slot s ON s.name = ANY (ARRAY[lim.name])) c
), locked AS MATERIALIZED (
    SELECT free.name, free.no FROM lim CROSS JOIN LATERAL (
        SELECT s.name, s.no FROM :schema.slot s
        WHERE s.name = lim.name AND s.enabled AND (s.holder IS NULL OR s.expires <= clock_timestamp())
        ORDER BY s.no
        LIMIT (SELECT CASE WHEN line.before < room.free THEN least($3::bigint, greatest(1,
            room.free - line.others)) + room.draining ELSE 0 END FROM line, room)
        FOR UPDATE SKIP LOCKED) free
), chosen AS MATERIALIZED (
    SELECT l.name, l.no FROM locked l ORDER BY l.no
    LIMIT (SELECT greatest(0, count(*) - (SELECT room.draining FROM room)) FROM locked)
), taken AS (
    UPDATE :schema.slot s
    SET holder = $2, epoch = greatest(s.epoch, room.newest) + 1, granted = clock_timestamp(),
        expires = clock_timestamp() + $4::bigint * interval '1 microsecond'
    FROM chosen c CROSS JOIN room WHERE s.name = ANY (ARRAY[c.name]) AND s.no = ANY (ARRAY[c.no])
    RETURNING s.no, s.epoch
), got AS MATERIALIZED (
    SELECT count(*) AS slots FROM taken
), served AS (
    -- Without a join: from version 17 on, the planner would begin with the ticket.
    DELETE FROM :schema.ticket t WHERE EXISTS (SELECT FROM lim) AND (SELECT got.slots FROM got) >= $3 AND t.name = $1
        AND t.holder = $2
), queued AS (
    -- A holder that got some slots and wants more goes to the end of the line.
    INSERT INTO :schema.ticket AS t (name, holder, expires)
    SELECT lim.name, $2, clock_timestamp() + $5::bigint * interval '1 microsecond' FROM lim, got WHERE got.slots < $3
    ON CONFLICT ON CONSTRAINT ticket_pkey DO UPDATE
    SET expires = excluded.expires,
        number = CASE WHEN (SELECT slots FROM got) > 0 THEN excluded.number ELSE t.number END,
        since = CASE WHEN (SELECT slots FROM got) > 0 THEN excluded.since ELSE t.since END
    WHERE (SELECT slots FROM got) > 0 OR t.expires < clock_timestamp() + $5::bigint * interval '0.5 microsecond'
)
SELECT taken.no, taken.epoch FROM lim LEFT JOIN taken ON true;

-- name: permit
-- The lock is the grant: it ends with the transaction, however that ends. Later statements of the pipeline read
-- edda.permit.
SELECT set_config('edda.permit', CASE WHEN permit.no IS NULL THEN '0' ELSE '1' END, true), permit.no IS NOT NULL
FROM (SELECT) one LEFT JOIN LATERAL (
    SELECT s.no FROM :schema.slot s
    WHERE s.name = $1 AND s.enabled AND (s.holder IS NULL OR s.expires <= clock_timestamp())
    ORDER BY s.no LIMIT 1
    FOR UPDATE SKIP LOCKED) permit ON true;

-- name: held
-- A slot whose lease is over is not held, even if no other holder has got it: a disabled one counts as released. A
-- slot that is held now is not granted until this transaction ends.
SELECT u.n FROM unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) WITH ORDINALITY u(name, no, holder, epoch, n)
CROSS JOIN LATERAL (
    SELECT FROM :schema.slot s
    WHERE s.name = u.name AND s.no = u.no AND s.holder = u.holder AND s.epoch = u.epoch
        AND s.expires > clock_timestamp()
    FOR UPDATE) ours;

-- name: release
-- Found again by key and not by ctid: a heartbeat may have moved the row after this statement's snapshot.
WITH ours AS MATERIALIZED (
    SELECT found.* FROM unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) u(name, no, holder, epoch)
    CROSS JOIN LATERAL (
        SELECT s.name, s.no FROM :schema.slot s
        WHERE s.name = u.name AND s.no = u.no AND s.holder = u.holder AND s.epoch = u.epoch
        FOR UPDATE) found
), freed AS (
    UPDATE :schema.slot s SET holder = NULL, granted = NULL, expires = NULL FROM ours o
    WHERE s.name = ANY (ARRAY[o.name]) AND s.no = ANY (ARRAY[o.no])
    RETURNING s.name
)
SELECT f.name, count(*), EXISTS (SELECT FROM :schema.ticket t WHERE t.name = f.name AND t.expires > clock_timestamp())
FROM freed f GROUP BY f.name;

-- name: renew
-- It waits for no lock: a locked slot is being finished, or its limit is being changed, and the slot is not lost
-- because of that.
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) WITH ORDINALITY u(name, no, holder, epoch, n)
), ours AS MATERIALIZED (
    SELECT u.n, found.* FROM asked u
    CROSS JOIN LATERAL (
        SELECT s.name, s.no FROM :schema.slot s
        WHERE s.name = u.name AND s.no = u.no AND s.holder = u.holder AND s.epoch = u.epoch
            AND s.expires > clock_timestamp()
        FOR UPDATE SKIP LOCKED) found
), renewed AS (
    UPDATE :schema.slot s SET expires = clock_timestamp() + $5::bigint * interval '1 microsecond'
    FROM ours o WHERE s.name = ANY (ARRAY[o.name]) AND s.no = ANY (ARRAY[o.no])
    RETURNING o.n
)
SELECT u.n, still.no IS NOT NULL FROM asked u LEFT JOIN LATERAL (
    SELECT s.no FROM :schema.slot s
    WHERE s.name = u.name AND s.no = u.no AND s.holder = u.holder AND s.epoch = u.epoch
        AND s.expires > clock_timestamp()) still ON true
WHERE NOT EXISTS (SELECT FROM renewed r WHERE r.n = u.n);

-- name: withdraw
DELETE FROM :schema.ticket t WHERE t.name = $1 AND t.holder = $2;

-- name: release_all
-- For the holder of an endpoint. Endpoints have few limits, and their slots are read by name: an index of holders
-- would have to change with every grant.
WITH ours AS MATERIALIZED (
    SELECT found.* FROM (SELECT l.name FROM :schema.concurrency_limit l WHERE l.name NOT LIKE 'named/%'
        ORDER BY l.name) l
    CROSS JOIN LATERAL (
        SELECT s.name, s.no FROM :schema.slot s WHERE s.name = l.name AND s.holder = $1 ORDER BY s.no FOR UPDATE) found
), freed AS (
    UPDATE :schema.slot s SET holder = NULL, granted = NULL, expires = NULL FROM ours o
    WHERE s.name = ANY (ARRAY[o.name]) AND s.no = ANY (ARRAY[o.no])
    RETURNING s.name
), left_line AS (
    DELETE FROM :schema.ticket t USING :schema.concurrency_limit l WHERE t.name = l.name AND t.holder = $1
        RETURNING t.name
)
SELECT count(:schema.nudge($2, 'limit:' || gone.name))
FROM (SELECT name FROM freed UNION SELECT name FROM left_line) gone;

-- name: call
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, 'limit:' || name)::text
    FROM unnest($2::text[]) name;

-- name: prune
DELETE FROM :schema.ticket t USING (
    SELECT old.* FROM :schema.concurrency_limit l
    CROSS JOIN LATERAL (
        SELECT o.name, o.holder FROM :schema.ticket o
        WHERE o.name = l.name AND o.expires < clock_timestamp() - $1::bigint * interval '1 microsecond'
        LIMIT $2 FOR UPDATE SKIP LOCKED) old LIMIT $2) old
WHERE t.name = old.name AND t.holder = old.holder;

-- name: set
SELECT :schema.set_limit($1, $2, $3);

-- name: exists
SELECT EXISTS (SELECT FROM :schema.concurrency_limit l WHERE l.name = $1);

-- name: list
SELECT l.name, l.slots, s.enabled, s.held, s.draining, t.waiting, t.oldest, clock_timestamp(), coalesce(l.declared, 0),
       l.operated
FROM :schema.concurrency_limit l
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE s.enabled) AS enabled, count(*) FILTER (WHERE x.held) AS held,
           count(*) FILTER (WHERE x.held AND NOT s.enabled) AS draining
    FROM :schema.slot s
    CROSS JOIN LATERAL (SELECT (s.holder IS NOT NULL AND s.expires > clock_timestamp())
        OR :schema.in_hand(s.xmax) AS held) x
    WHERE s.name = l.name) s
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, min(t.since) AS oldest FROM :schema.ticket t WHERE t.name = l.name
        AND t.expires > clock_timestamp()) t
WHERE $1 = '' OR l.name = $1
ORDER BY l.name;

-- name: holders
-- The held slots of the limit $1, or of each limit if that is empty: its first $2 held slots. If a transaction holds
-- one as its permit, also the server process that runs it, and since when, if this role may read that.
WITH at_work AS MATERIALIZED (
    SELECT a.backend_xid, a.pid, a.application_name, a.xact_start FROM pg_stat_activity a
    WHERE a.backend_xid IS NOT NULL)
SELECT l.name, x.no, NOT x.enabled, x.holder, x.granted, x.expires, clock_timestamp(), a.pid,
       coalesce(a.application_name, ''), a.xact_start
FROM :schema.concurrency_limit l
CROSS JOIN LATERAL (
    SELECT s.no, s.enabled, CASE WHEN h.leased THEN s.holder END AS holder, s.granted,
        CASE WHEN h.leased THEN s.expires END AS expires, CASE WHEN NOT h.leased THEN s.xmax END AS mark
    FROM :schema.slot s
    CROSS JOIN LATERAL (SELECT s.holder IS NOT NULL AND s.expires > clock_timestamp() AS leased) h
    WHERE s.name = l.name AND (h.leased OR :schema.in_hand(s.xmax))
    ORDER BY s.no LIMIT $2) x
LEFT JOIN at_work a ON a.backend_xid = x.mark
WHERE $1 = '' OR l.name = $1
ORDER BY l.name, x.no;
