-- The orders service's own tables.
CREATE TABLE IF NOT EXISTS placed (order_id text PRIMARY KEY, card text NOT NULL, cents bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS page (order_id text NOT NULL, news text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
