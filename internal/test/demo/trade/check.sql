-- Each order with the number of each of its effects, and whether these numbers fit the end of the order. An effect of
-- an order that was never placed is a line of its own, and not fine.
WITH counted AS (
    SELECT order_id,
           count(*) FILTER (WHERE effect = 'placed')      AS placed,
           count(*) FILTER (WHERE effect = 'charge')      AS charges,
           count(*) FILTER (WHERE effect = 'refund')      AS refunds,
           count(*) FILTER (WHERE effect = 'reservation') AS reservations,
           count(*) FILTER (WHERE effect = 'release')     AS releases,
           count(*) FILTER (WHERE effect = 'shipment')    AS shipments,
           count(*) FILTER (WHERE effect = 'outcome')     AS outcomes,
           coalesce(min(outcome), 'open')                 AS outcome
    FROM (          SELECT order_id, 'placed' AS effect, NULL AS outcome FROM placed
          UNION ALL SELECT order_id, 'charge',      NULL FROM charge
          UNION ALL SELECT order_id, 'refund',      NULL FROM refund
          UNION ALL SELECT order_id, 'reservation', NULL FROM reservation
          UNION ALL SELECT order_id, 'release',     NULL FROM release
          UNION ALL SELECT order_id, 'shipment',    NULL FROM shipment
          UNION ALL SELECT order_id, 'outcome',     outcome FROM outcome) effects
    GROUP BY order_id
)
SELECT order_id, outcome,
       (placed, charges, refunds, reservations, releases, shipments, outcomes)::text AS effects,
       CASE outcome
           WHEN 'shipped' THEN (placed, charges, refunds, reservations, releases, shipments, outcomes) = (1, 1, 0, 1,
               0, 1, 1)
           WHEN 'open'    THEN false
           ELSE placed = 1 AND outcomes = 1 AND shipments = 0
                AND charges = refunds AND charges <= 1 AND reservations = 1 AND releases = 1
       END AS fine
FROM counted
ORDER BY order_id;
