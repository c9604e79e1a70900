-- Every time here is clock_timestamp(), the database's clock when the statement reads the row. now() would be the
-- begin of the transaction, and older than the row.

-- name: acquire
-- One statement takes the lease or does not. A locked row is in use: by another bidder, or by a guarded write of the
-- last holder, and a new term must wait for that write. So the row is skipped, and this bid is lost. FOR UPDATE is
-- intended: the weaker lock of an UPDATE does not conflict with the lock of a guarded write. A bidder that already
-- holds the lease because it missed the answer waits like all others: otherwise a holder that can bid but not renew
-- would keep the lease forever. A term that this bidder has observed without a renewal for its whole length is over
-- as well, whatever the clock shows: otherwise, after the clock went back, a dead holder would keep the lease for
-- that long. Each renewal makes a new version of the row, with a new xmin.
WITH free AS MATERIALIZED (
    SELECT l.name FROM :schema.lease l
    WHERE l.name = $1 AND (l.holder IS NULL OR l.expires <= clock_timestamp() OR (l.epoch = $4 AND l.xmin::text = $5))
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE :schema.lease l
    SET holder = $2, epoch = l.epoch + 1, acquired = clock_timestamp(), renewed = clock_timestamp(),
        expires = clock_timestamp() + $3::bigint * interval '1 microsecond', resign = NULL
    FROM free WHERE l.name = $1
    RETURNING l.epoch
), made AS (
    INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
    SELECT $1, $2, 1, clock_timestamp(), clock_timestamp(), clock_timestamp() + $3::bigint * interval '1 microsecond'
    WHERE NOT EXISTS (SELECT FROM :schema.lease l WHERE l.name = $1)
    ON CONFLICT (name) DO NOTHING
    RETURNING epoch
), won AS (SELECT epoch FROM taken UNION ALL SELECT epoch FROM made)
SELECT true, w.epoch, $2::text, '', 0::bigint FROM won w
UNION ALL
SELECT false, l.epoch, coalesce(l.holder, ''), l.xmin::text, (extract(epoch
    FROM l.expires - l.renewed) * 1000000)::bigint
FROM :schema.lease l WHERE l.name = $1 AND NOT EXISTS (SELECT FROM won);

-- name: renew
-- A term that has expired is over, even if no process has taken the lease since. No row: lost for good.
UPDATE :schema.lease l
SET renewed = clock_timestamp(), expires = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3 AND l.expires > clock_timestamp()
RETURNING l.resign IS NOT DISTINCT FROM l.epoch;

-- name: release
-- By update: after a delete the row's epochs would begin again. The commit sends the notification.
WITH gone AS (
    UPDATE :schema.lease l SET holder = NULL, resign = NULL, expires = clock_timestamp()
    WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3
    RETURNING l.name)
SELECT :schema.nudge($4, 'lease:' || name) FROM gone;

-- name: resign
-- The request names its term, so that it does not apply to the next one.
WITH asked AS (
    UPDATE :schema.lease l SET resign = l.epoch WHERE l.name = $1 AND l.holder IS NOT NULL
        AND l.expires > clock_timestamp()
    RETURNING l.name)
SELECT :schema.nudge($2, 'lease:' || name) FROM asked;

-- name: guard
-- Until this transaction ends no new term begins, because a bidder needs the row FOR UPDATE. A renewal does not wait
-- for it. A term that has expired and has no successor is still the only writer.
SELECT :schema.expect(EXISTS (SELECT FROM :schema.lease l WHERE l.name = $1 AND l.holder = $2
    AND l.epoch = $3 FOR KEY SHARE),
                      'another process holds the lease ' || $1);

-- name: under
-- One row, however many leases there are: a Line reads one. A lease that is free or has expired has no time left.
SELECT coalesce(array_agg(l.name ORDER BY l.name), '{}'),
       coalesce(array_agg(CASE WHEN l.holder IS NULL THEN 0
                          ELSE greatest(0, extract(epoch FROM l.expires - clock_timestamp()) * 1000000)::bigint END
                              ORDER BY l.name), '{}')
FROM (SELECT x.name, x.holder, x.expires FROM :schema.lease x WHERE x.name >= $1 AND x.name < $2
    ORDER BY x.name LIMIT $3) l;

-- name: list
SELECT l.name, coalesce(l.holder, ''), l.epoch, l.acquired, l.renewed, l.expires,
       l.holder IS NOT NULL AND l.expires > clock_timestamp(), coalesce(l.resign = l.epoch, false), clock_timestamp()
FROM :schema.lease l
WHERE $1 = '' OR l.name = $1
ORDER BY l.name
LIMIT $2;
