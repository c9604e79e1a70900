-- The payments service's own tables. They have no constraint, so that a duplicate effect is a second row.
CREATE TABLE IF NOT EXISTS payment (order_id text NOT NULL, cents bigint NOT NULL, declined boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS shipment (order_id text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
