-- name: placed
SELECT order_id, card, cents FROM placed;

-- name: ends
-- How the buyer was told that the order ended.
SELECT order_id, news FROM page WHERE news <> 'delayed';

-- name: payments
SELECT order_id, cents, declined FROM payment;

-- name: shipments
SELECT order_id FROM shipment;

-- name: left_over
-- What must not be left in either database when all is at rest. A timeout that was overtaken by its order's end is
-- discarded, and rightly so.
SELECT 'the saga of ' || key || ' has not ended' FROM :schema.saga
UNION ALL
SELECT format('%s is dead in %s: %s', kind, endpoint, error) FROM :schema.dead_letter
UNION ALL
SELECT format('%s was discarded by %s: %s', kind, endpoint, reason) FROM :schema.discarded
    WHERE kind <> 'order.payment-overdue';

-- name: at_rest_orders
-- How many orders were placed, how many have ended, and how many of these are to be shipped.
SELECT (SELECT count(*) FROM placed), (SELECT count(*) FROM page WHERE news <> 'delayed'), (SELECT count(*) FROM page
    WHERE news = 'paid');

-- name: at_rest_payments
SELECT count(*) FROM shipment;
