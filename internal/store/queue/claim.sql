-- Claims of leased endpoints. A statement that returns messages returns the columns of Row first, with the place
-- before the claim as due; then due, claim, cancelled, the owner before, deaths, deaths alone, how many were found,
-- how a process died.
--
-- "q.due = ANY (ARRAY[u.due])" is "q.due = u.due" in a form that the planner cannot merge. On a queue that vacuum has
-- found empty the planner expects no rows. With a plain = it would read the whole index, in the order of the keys,
-- and compare each entry. OFFSET 0 prevents the same where the queue is not the target.

-- name: claim
-- A claim moves due to the end of the lease, so that the row leaves the head of the queue and comes back by itself.
-- Each row gets a different microsecond: one message may be in a queue twice. Rows are claimed as long as they have
-- no more than $4 bytes together, and the first one always is; the column before the last is how many were due, up to
-- $1. If the process of a row's last owner has died, the row counts a death, and the last column shows it: 2 if the
-- message was alone in hand.
WITH found AS MATERIALIZED (
    SELECT x.ctid AS tid, x.due AS was, x.owner AS before, x.alone AS lonely,
        octet_length(x.kind) + octet_length(x.header) + octet_length(x.body) AS size
    FROM :queue x
    WHERE x.due <= now() ORDER BY x.due, x.id LIMIT $1 FOR UPDATE SKIP LOCKED),
numbered AS MATERIALIZED (
    SELECT f.*, row_number() OVER upto AS place, sum(f.size) OVER upto AS bytes,
           CASE WHEN f.before <> $3::uuid THEN :schema.session_died(f.before, $5) END AS died
    FROM found f WINDOW upto AS (ROWS UNBOUNDED PRECEDING))
UPDATE :queue q
SET due = now() + ($2::bigint + n.place) * interval '1 microsecond', claim = coalesce(q.claim, 0) + 1,
    owner = $3::uuid, was_due = coalesce(q.was_due, n.was),
    deaths = CASE WHEN n.died THEN coalesce(q.deaths, 0) + 1 ELSE q.deaths END,
    deaths_alone = CASE WHEN n.died AND q.alone THEN coalesce(q.deaths_alone, 0) + 1 ELSE q.deaths_alone END,
        alone = NULL
FROM numbered n WHERE q.ctid = n.tid AND (n.bytes <= $4::bigint OR n.place = 1)
RETURNING q.was_due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body, n.size, now(),
          q.due, q.claim, q.cancelled, n.before, coalesce(q.deaths, 0), coalesce(q.deaths_alone, 0),
          (SELECT count(*) FROM found), CASE WHEN n.died THEN 1 + (n.lonely IS TRUE)::int ELSE 0 END;

-- name: extend
-- Locked rows are left for the next time: the extension does not wait for a finish or a cancel. They are found again
-- by key and not by ctid: a cancel that commits after this statement's snapshot has moved the row.
WITH found AS MATERIALIZED (
    SELECT u.place, x.due, x.id FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim,
        place)
    CROSS JOIN LATERAL (
        SELECT m.due, m.id FROM :queue m
        WHERE m.due = u.due AND m.id = u.id AND m.claim = u.claim AND m.owner = $5::uuid FOR UPDATE SKIP LOCKED) x)
UPDATE :queue q SET due = $6::timestamptz + f.place * interval '1 microsecond'
FROM found f WHERE q.due = ANY (ARRAY[f.due]) AND q.id = f.id
RETURNING f.place, q.cancelled, now();

-- name: held
SELECT u.place FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
CROSS JOIN LATERAL (
    SELECT FROM :queue m WHERE m.due = u.due AND m.id = u.id AND m.claim = u.claim AND m.owner = $5::uuid OFFSET 0) x;

-- name: finish
-- Exactly the messages whose claim is in force: a later claim has moved the row or changed its number. A cancel that
-- commits while this waits for the row also moves it, without ending the claim: so the row is not found by ctid.
DELETE FROM :queue q USING unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
WHERE q.due = ANY (ARRAY[u.due]) AND q.id = u.id AND q.claim = u.claim AND q.owner = $5::uuid
RETURNING u.place, now(), q.cancelled;

-- name: release
-- A message that was not begun goes back to its former place. See finish.
UPDATE :queue q SET due = q.was_due, was_due = NULL, claim = NULL, owner = NULL
FROM unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::int[]) u(due, id, claim, place)
WHERE q.due = ANY (ARRAY[u.due]) AND q.id = u.id AND q.claim = u.claim AND q.owner = $5::uuid
RETURNING u.place, now(), q.cancelled;

-- name: mark_alone
UPDATE :queue q SET alone = $5 WHERE q.due = $1 AND q.id = $2 AND q.claim = $3 AND q.owner = $4::uuid;

-- name: in_dead_hands
-- The messages that these sessions have claimed. A queue has no index of owners, so it is read from a lease before
-- the first of their lanes has ended to the latest end that a current lease may have. An extension that is late moves
-- the rows and skips the lane, which the caller has locked. It adds a lease to its process's estimate of the
-- database's clock, which is behind by less than a lease: a process that took longer to read the clock does not trust
-- a claim made with it.
SELECT q.was_due, q.id, q.sent, q.first_failed, q.attempt, q.conflict, q.kind, q.header, q.body,
       octet_length(q.kind) + octet_length(q.header) + octet_length(q.body), now(),
       q.due, q.claim, q.cancelled, q.owner,
       coalesce(q.deaths, 0) + d.died::int, coalesce(q.deaths_alone, 0) + (d.died AND q.alone IS TRUE)::int, 0::bigint,
       CASE WHEN d.died THEN 1 + (q.alone IS TRUE)::int ELSE 0 END
FROM (SELECT u.session, u.since, u.session <> $4::uuid AND :schema.session_died(u.session, $5) AS died
      FROM unnest($1::uuid[], $2::timestamptz[]) u(session, since) OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT x.* FROM :queue x WHERE x.due >= d.since AND x.due <= now() + 2 * $3::bigint * interval '1 microsecond'
        AND x.owner = d.session OFFSET 0) q;

-- name: lock_claims
-- Claims of an ordered endpoint run one at a time in the whole cluster: the first one gets the head of the queue.
SELECT pg_advisory_xact_lock(1162110000 + $1::int, tableoid::int) FROM :schema.subscription_generation;

-- name: cancel_waiting
-- Reads the whole queue: it has no index of ids. Waits for a message that a batch has in hand.
DELETE FROM :queue q WHERE q.ctid = (
    SELECT x.ctid FROM :queue x WHERE x.id = $1 AND NOT (x.owner IS NOT NULL
        AND x.due > clock_timestamp()) LIMIT 1 FOR UPDATE)
RETURNING q.kind, q.header;

-- name: cancel_parked
DELETE FROM :schema.parked p WHERE p.queue = $1 AND p.id = $2 RETURNING p.kind, p.header;

-- name: cancel_claimed
UPDATE :queue q SET cancelled = $2 WHERE q.id = $1 AND q.owner IS NOT NULL;

-- name: is_there
SELECT EXISTS (SELECT FROM :queue q WHERE q.id = $1) OR EXISTS (SELECT FROM :schema.parked p WHERE p.queue = $2
    AND p.id = $1);

-- name: retime
-- An operator moves a timeout that no worker has in hand and that was not tried: its due is still the one in its
-- instance. A time in the past means now.
WITH found AS MATERIALIZED (
    SELECT m.ctid AS tid FROM :queue m WHERE m.due = $1 AND m.id = $2 FOR UPDATE SKIP LOCKED)
UPDATE :queue q SET due = greatest($3::timestamptz, clock_timestamp())
FROM found f WHERE q.ctid = f.tid RETURNING q.due;
