-- name: known_to_orders
SELECT order_id, 'placed', card, cents, false FROM placed
UNION ALL
SELECT order_id, 'ended', news, 0, false FROM page WHERE news <> 'delayed';

-- name: known_to_payments
SELECT order_id, 'payment', '', cents, declined FROM payment
UNION ALL
SELECT order_id, 'shipment', '', 0, false FROM shipment;

-- name: left_over
-- What must not be left in either database when all is at rest. A timeout that was overtaken by its order's end is
-- discarded, and rightly so.
SELECT 'the saga of ' || key || ' has not ended' FROM :schema.saga
UNION ALL
SELECT format('%s is dead in %s: %s', kind, endpoint, error) FROM :schema.dead_letter
UNION ALL
SELECT format('%s was discarded by %s: %s', kind, endpoint, reason) FROM :schema.discarded
    WHERE kind <> 'order.payment-overdue';

-- name: ended
-- How many orders were placed and have not ended, and how many are to be shipped.
SELECT (SELECT count(*) FROM placed) - (SELECT count(*) FROM page WHERE news <> 'delayed'),
       (SELECT count(*) FROM page WHERE news = 'paid');

-- name: shipped
SELECT 0::bigint, count(*) FROM shipment;
